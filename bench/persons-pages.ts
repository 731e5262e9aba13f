import type { Target } from './processes/load-process.ts';

const PERSONS = /* GraphQL */ `
  query ($first: Int, $after: String) {
    persons(first: $first, after: $after) {
      items {
        id
        firstName
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`;

const CONNECTION = /* GraphQL */ `
  query ($first: Int, $after: String) {
    personsConnection(first: $first, after: $after) {
      edges {
        cursor
        node {
          id
          firstName
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`;

/** With a field that `own-field.config.mts` adds. */
const WITH_OWN_FIELD = /* GraphQL */ `
  query ($first: Int, $after: String) {
    persons(first: $first, after: $after) {
      items {
        id
        firstName
        greeting
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`;

/** Bodies of requests for different pages of 50. */
export async function pagesOf(target: Target, count: number): Promise<string[]> {
  return await bodiesOf(target, count, PERSONS, 'persons');
}

/** The same pages as connections, which only our gateway has. */
export async function connectionsOf(target: Target, count: number): Promise<string[]> {
  return await bodiesOf(target, count, CONNECTION, 'personsConnection');
}

/** The same pages with an own field in each record. */
export async function ownFieldsOf(target: Target, count: number): Promise<string[]> {
  return await bodiesOf(target, count, WITH_OWN_FIELD, 'persons');
}

const ENTITIES = /* GraphQL */ `
  query ($representations: [_Any!]!) {
    _entities(representations: $representations) {
      ... on Person {
        id
        firstName
      }
    }
  }
`;

/** For the records of the same pages, by their ids. */
export async function entitiesOf(target: Target, count: number): Promise<string[]> {
  const { allPersons } = await ask<{ allPersons: { id: string }[] }>(
    target,
    '{ allPersons { id } }',
  );
  const variables = Array.from({ length: count }, (_, page) => {
    const ids = allPersons.slice(50 * page, 50 * (page + 1));
    return { representations: ids.map(({ id }) => ({ __typename: 'Person', id })) };
  });
  await ask(target, ENTITIES, variables[0]);
  return variables.map((each) => JSON.stringify({ query: ENTITIES, variables: each }));
}

interface Page {
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}

/** Bodies of requests for the pages of a list in turn. @param query with the variables `first` and `after` */
async function bodiesOf(target: Target, count: number, query: string, field: string) {
  const bodies: string[] = [];
  let after: string | null = null;
  while (bodies.length < count) {
    const variables = { first: 50, after };
    bodies.push(JSON.stringify({ query, variables }));
    const data: Record<string, Page> = await ask(target, query, variables);
    ({ endCursor: after } = data[field]!.pageInfo);
  }
  return bodies;
}

/** Returns the data of a query. Throws if the answer has errors: its time would mean nothing. */
async function ask<T>({ endpoint, headers }: Target, query: string, variables = {}): Promise<T> {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = (await response.json()) as { data: T; errors?: { message: string }[] };
  if (errors) throw new Error(`${endpoint} answered: ${errors[0]!.message}`);
  return data;
}
