import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { graphql } from './generated/gql.ts';
import type { PeopleQuery } from './generated/graphql.ts';

const PEOPLE = graphql(`
  query People($first: Int!, $after: String) {
    personsConnection(first: $first, after: $after) {
      totalCount
      nodes {
        id
        firstName
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`);

/** What is needed of a `GraphQLClient` of graphql-request. */
export interface GraphQLClient {
  request<Data, Variables extends object>(request: {
    document: TypedDocumentNode<Data, Variables>;
    variables: Variables;
    signal: AbortSignal;
  }): Promise<Data>;
}

/** The list page by page, for `useInfiniteQuery`. */
export function peoplePages(client: GraphQLClient, first = 60) {
  return {
    queryKey: ['people', first],
    queryFn: ({ pageParam, signal }: { pageParam: string | null; signal: AbortSignal }) =>
      client.request({ document: PEOPLE, variables: { first, after: pageParam }, signal }),
    initialPageParam: null,
    getNextPageParam: ({ personsConnection: people }: PeopleQuery) =>
      people?.pageInfo.hasNextPage ? people.pageInfo.endCursor : undefined,
    retry: (failures: number, error: Error) => failures < 3 && retryAfter(error) !== undefined,
    retryDelay: (_failures: number, error: Error) => (retryAfter(error) ?? 0) * 1000,
  };
}

/** What a page may show: the message of a `ClientError` of graphql-request contains the whole answer. */
export function messageOf(error: Error): string {
  return errorsIn(error)[0]?.message ?? 'The server cannot be reached. Try again.';
}

/** The seconds after which the request may succeed; undefined: never by itself. */
function retryAfter(error: Error): number | undefined {
  const waits = errorsIn(error).map(({ extensions }) => Number(extensions?.['retryAfter']));
  return waits.length > 0 && waits.every((wait) => wait >= 0) ? Math.max(...waits) : undefined;
}

function errorsIn(error: Error) {
  const { response } = error as {
    response?: {
      errors?: readonly { message: string; extensions?: Record<string, unknown> }[];
    };
  };
  return response?.errors ?? [];
}
