import { Client, fetchExchange } from '@urql/core';
import { cacheExchange } from '@urql/exchange-graphcache';
import { relayPagination } from '@urql/exchange-graphcache/extras';
import { graphql } from './generated/gql.ts';
import type { PeopleQuery, PeopleQueryVariables } from './generated/graphql.ts';

const PEOPLE = graphql(`
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
`);

export type People = NonNullable<PeopleQuery['personsConnection']>;

/**
 * `relayPagination` joins all pages that were requested to one list.
 *
 * @param credential the header of the signed-in user, `{ authorization: 'Bearer …' }`, which every request gets
 */
export function createClient(url: string, credential: () => Record<string, string>): Client {
  return new Client({
    url,
    fetchOptions: () => ({ headers: credential() }),
    // Otherwise urql sends short queries by GET: with their variables in the address, which proxies log. The gateway
    // refuses a GET without a credential, because any page can send it.
    preferGetMethod: false,
    exchanges: [
      cacheExchange({ resolvers: { Query: { personsConnection: relayPagination() } } }),
      fetchExchange,
    ],
  });
}

/** Requests a page. @returns all people who were requested so far */
export async function loadPeople(client: Client, page: PeopleQueryVariables): Promise<People> {
  const { data, error } = await client.query(PEOPLE, page);
  if (!data?.personsConnection) throw error ?? new Error('The gateway returned no people.');
  return data.personsConnection;
}
