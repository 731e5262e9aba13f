import { ApolloClient, CombinedGraphQLErrors, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { relayStylePagination } from '@apollo/client/utilities';
import { filter, firstValueFrom } from 'rxjs';
import { expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';

const PEOPLE = gql`
  query People($first: Int, $after: String) {
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
        hasPreviousPage
        startCursor
        endCursor
      }
    }
  }
`;

interface People {
  personsConnection: {
    edges: { cursor: string; node: { id: string; firstName: string } }[];
    pageInfo: { hasNextPage: boolean; endCursor: string };
  };
}

test('Apollo Client pages through a connection with its own relayStylePagination', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 137 });
  const client = apolloClient(gateway);
  const watched = client.watchQuery<People>({ query: PEOPLE, variables: { first: 60 } });
  await firstValueFrom(watched.pipe(filter(({ loading }) => !loading)));
  const people = () => watched.getCurrentResult().data as People;
  while (people().personsConnection.pageInfo.hasNextPage) {
    const { endCursor } = people().personsConnection.pageInfo;
    await watched.fetchMore({ variables: { first: 60, after: endCursor } });
  }
  expect(people().personsConnection.edges.map(({ node }) => node.id)).toEqual(
    gateway.sandbox.persons.all().map(({ id }) => id),
  );
  client.stop();
});

test('Apollo Client gets the code of an error', async () => {
  await using gateway = await startGatewayOverSandbox();
  const client = apolloClient(gateway);
  const failing = client.query({ query: PEOPLE, variables: { after: 'damaged' } });
  const error = await failing.catch((reason: unknown) => reason);
  expect(CombinedGraphQLErrors.is(error)).toBe(true);
  expect((error as CombinedGraphQLErrors).errors[0]?.extensions?.['code']).toBe('CURSOR_INVALID');
  client.stop();
});

function apolloClient(gateway: TestGateway): ApolloClient {
  return new ApolloClient({
    link: new HttpLink({
      uri: '/graphql',
      fetch: (_uri, init) => gateway.fetch('/graphql', init),
    }),
    cache: new InMemoryCache({
      typePolicies: { Query: { fields: { personsConnection: relayStylePagination() } } },
    }),
  });
}
