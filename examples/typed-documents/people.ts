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

/** Reads the whole list, page by page. @param url of the gateway's `/graphql` */
export async function* readPeople(url: string, first: number): AsyncGenerator<Person> {
  let after: string | null = null;
  for (;;) {
    const { personsConnection: people }: PeopleQuery = await send(url, PEOPLE, { first, after });
    if (!people) return;
    yield* people.nodes;
    if (!people.pageInfo.hasNextPage) return;
    after = people.pageInfo.endCursor ?? null;
  }
}

/** Sends an operation. Its document determines the types of the variables and of the result. */
async function send<Data, Variables>(
  url: string,
  document: TypedDocumentString<Data, Variables>,
  variables: Variables,
): Promise<Data> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ query: document, variables }),
  });
  const { data, errors } = (await response.json()) as {
    data?: Data | null;
    errors?: readonly { message: string }[];
  };
  if (errors || !data) throw new Error(errors?.[0]?.message ?? `status ${response.status}`);
  return data;
}
