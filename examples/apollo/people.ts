import { ApolloClient, HttpLink, InMemoryCache } from '@apollo/client';
import { Defer20220824Handler } from '@apollo/client/incremental';
import { SetContextLink } from '@apollo/client/link/context';
import { relayStylePagination } from '@apollo/client/utilities';
import { graphql } from './generated/gql.ts';
import type { PeopleQueryVariables } from './generated/graphql.ts';

export const PEOPLE = graphql(`
  query People($first: Int, $after: String, $last: Int, $before: String) {
    personsConnection(first: $first, after: $after, last: $last, before: $before) {
      totalCount
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

/** The whole list, which grows with each part that arrives. */
export const EVERYBODY = graphql(`
  query Everybody {
    allPersons @stream {
      id
      firstName
    }
  }
`);

/**
 * `relayStylePagination` joins the pages that `fetchMore` requests to one list. It has to know the filters of a list:
 * `vacanciesConnection: relayStylePagination(['status'])`. Otherwise all share one list.
 *
 * @param credential the header of the signed-in user, `{ authorization: 'Bearer …' }`, which every request gets
 */
export function createClient(url: string, credential: () => Record<string, string>): ApolloClient {
  const withCredential = new SetContextLink(({ headers }) => ({
    headers: { ...headers, ...credential() },
  }));
  return new ApolloClient({
    link: withCredential.concat(new HttpLink({ uri: url })),
    cache: new InMemoryCache({
      typePolicies: { Query: { fields: { personsConnection: relayStylePagination() } } },
    }),
    // Without a handler, Apollo Client does not accept streams. The assertion is needed only under
    // exactOptionalPropertyTypes.
    incrementalHandler:
      new Defer20220824Handler() as ApolloClient.Options['incrementalHandler'] & {},
  });
}

/** Watches the list: as with `useQuery`, `fetchMore` adds a page at either end. */
export function watchPeople(client: ApolloClient, page: PeopleQueryVariables) {
  return client.watchQuery({ query: PEOPLE, variables: page });
}

/** Watches the whole list: as with `useQuery`, `data` has more people after each part. */
export function watchEverybody(client: ApolloClient) {
  return client.watchQuery({ query: EVERYBODY });
}
