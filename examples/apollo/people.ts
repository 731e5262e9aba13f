import { ApolloClient, gql, HttpLink, InMemoryCache, type TypedDocumentNode } from '@apollo/client';
import { relayStylePagination } from '@apollo/client/utilities';

export interface People {
  personsConnection: {
    edges: { cursor: string; node: { id: string; firstName: string | null } }[];
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

export const PEOPLE: TypedDocumentNode<People, Page> = gql`
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

/** `relayStylePagination` joins the pages that `fetchMore` requests to one list. */
export function createClient(url: string): ApolloClient {
  return new ApolloClient({
    link: new HttpLink({ uri: url }),
    cache: new InMemoryCache({
      typePolicies: { Query: { fields: { personsConnection: relayStylePagination() } } },
    }),
  });
}

/** Watches the list: as with `useQuery`, `fetchMore` adds a page at either end. */
export function watchPeople(client: ApolloClient, page: Page) {
  return client.watchQuery({ query: PEOPLE, variables: page });
}
