import { Client, fetchExchange, gql } from '@urql/core';
import { cacheExchange } from '@urql/exchange-graphcache';
import { relayPagination } from '@urql/exchange-graphcache/extras';

export interface People {
  personsConnection: {
    edges: { node: { id: string; firstName: string | null } }[];
    pageInfo: {
      hasNextPage: boolean;
      hasPreviousPage: boolean;
      startCursor: string | null;
      endCursor: string | null;
    };
  };
}

export interface Page {
  first?: number;
  after?: string | null;
  last?: number;
  before?: string | null;
}

export const PEOPLE = gql<People, Page>`
  query People($first: Int, $after: String, $last: Int, $before: String) {
    personsConnection(first: $first, after: $after, last: $last, before: $before) {
      edges {
        cursor
        node {
          id
          firstName
        }
      }
      pageInfo {
        hasNextPage
        hasPreviousPage
        startCursor
        endCursor
      }
    }
  }
`;

/** `relayPagination` joins all pages that were requested to one list. */
export function createClient(url: string): Client {
  return new Client({
    url,
    preferGetMethod: false,
    exchanges: [
      cacheExchange({ resolvers: { Query: { personsConnection: relayPagination() } } }),
      fetchExchange,
    ],
  });
}

/** Requests a page. @returns all people who were requested so far */
export async function loadPeople(client: Client, page: Page): Promise<People> {
  const { data, error } = await client.query(PEOPLE, page);
  if (!data) throw error ?? new Error('The gateway returned no people.');
  return data;
}
