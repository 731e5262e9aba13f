import { CombinedGraphQLErrors, type ApolloClient } from '@apollo/client';
import type { PeopleQuery, PeopleQueryVariables } from './generated/graphql.ts';
import { PEOPLE } from './people.ts';

interface Partial {
  /** A field that failed is null. */
  readonly data: PeopleQuery | undefined;
  /** The fields that failed, and why: `personsConnection.totalCount: DRAIN_LIMIT_EXCEEDED`. */
  readonly failed: readonly string[];
}

/**
 * Requests a page, and shows what arrived although a field failed. With the default `errorPolicy`, which is `none`, one
 * failed field costs the whole answer.
 */
export async function loadPartial(
  client: ApolloClient,
  page: PeopleQueryVariables,
): Promise<Partial> {
  const { data, error } = await client.query({
    query: PEOPLE,
    variables: page,
    errorPolicy: 'all',
  });
  if (error && !CombinedGraphQLErrors.is(error)) throw error;
  const errors = error?.errors ?? [];
  return {
    data,
    failed: errors.map(
      ({ path, extensions }) => `${path?.join('.')}: ${String(extensions?.['code'])}`,
    ),
  };
}

/** Sends a request again, when the gateway says that it will be answered later. @param attempts at most */
export async function withPatience<T>(send: () => Promise<T>, attempts = 3): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send();
    } catch (error) {
      const seconds = retryAfter(error);
      if (seconds === undefined || attempt >= attempts) throw error;
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    }
  }
}

/** The seconds after which the request may succeed; undefined: it will not by itself. */
function retryAfter(error: unknown): number | undefined {
  if (!CombinedGraphQLErrors.is(error)) return undefined;
  const waits = error.errors.map(({ extensions }) => Number(extensions?.['retryAfter']));
  return waits.every((wait) => wait >= 0) ? Math.max(...waits) : undefined;
}
