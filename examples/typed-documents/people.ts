import { graphql } from './generated/gql.ts';
import type { PeopleQuery, TypedDocumentString } from './generated/graphql.ts';

const PEOPLE = graphql(`
  query People($first: Int, $after: String) {
    personsConnection(first: $first, after: $after) {
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

export type Person = NonNullable<PeopleQuery['personsConnection']>['nodes'][number];

/** Where the gateway is, and who asks it. */
export interface Gateway {
  /** Of its `/graphql`. */
  readonly url: string;
  /** The header of the caller, `{ authorization: 'Bearer …' }`, which every request gets. */
  readonly credential: () => Record<string, string>;
}

/** Reads the whole list, page by page. */
export async function* readPeople(gateway: Gateway, first: number): AsyncGenerator<Person> {
  let after: string | null = null;
  for (;;) {
    const { personsConnection: people }: PeopleQuery = await send(gateway, PEOPLE, {
      first,
      after,
    });
    if (!people) return;
    yield* people.nodes;
    if (!people.pageInfo.hasNextPage) return;
    after = people.pageInfo.endCursor ?? null;
  }
}

/** Sends an operation. Its document determines the types of the variables and of the result. */
async function send<Data, Variables>(
  { url, credential }: Gateway,
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
): Promise<Data> {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      ...credential(),
    },
    body: JSON.stringify({ query: document, variables }),
  });
  const { data, errors } = (await response.json()) as {
    data?: Data | null;
    errors?: readonly { message: string }[];
  };
  if (errors || !data) throw new Error(errors?.[0]?.message ?? `status ${response.status}`);
  return data;
}
