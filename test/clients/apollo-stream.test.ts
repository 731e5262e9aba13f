import {
  ApolloClient,
  CombinedGraphQLErrors,
  gql,
  HttpLink,
  InMemoryCache,
  NetworkStatus,
} from '@apollo/client';
import { Defer20220824Handler } from '@apollo/client/incremental';
import { filter, firstValueFrom, tap } from 'rxjs';
import { expect, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';

interface Person {
  id: string;
  firstName: string | null;
}

const STREAM = gql`
  query Everybody($first: Int!) {
    allPersons @stream(initialCount: $first) {
      id
      firstName
    }
  }
`;

test('Apollo Client shows a streamed list as it grows, and keeps all of it in its cache', async () => {
  await using gateway = await startGatewayOverSandbox();
  await using apollo = await connectApollo(gateway);
  const { client } = apollo;
  const lengths: number[] = [];
  const watched = client.watchQuery<{ allPersons: Person[] }>({
    query: STREAM,
    variables: { first: 3 },
  });
  const { data } = await firstValueFrom(
    watched.pipe(
      tap(({ data: so }) => lengths.push(so?.allPersons?.length ?? 0)),
      filter(({ networkStatus }) => networkStatus === NetworkStatus.ready),
    ),
  );
  const everybody = gateway.sandbox.persons
    .all()
    .map(({ id, firstName }) => ({ __typename: 'Person', id, firstName }));
  expect(data?.allPersons).toEqual(everybody);
  expect(lengths).toEqual(lengths.toSorted((left, right) => left - right));
  expect(lengths).toContain(3);
  expect(client.readQuery({ query: STREAM, variables: { first: 3 } })).toEqual({
    allPersons: everybody,
  });
});

test('Apollo Client gets the code of the error that interrupted a stream, and where to resume', async () => {
  await using gateway = await startGatewayOverSandbox({}, { config: { drainMaxItems: 60 } });
  await using apollo = await connectApollo(gateway);
  const failing = apollo.client.query({ query: STREAM, variables: { first: 3 } });
  const error = await failing.catch((reason: unknown) => reason);
  expect(CombinedGraphQLErrors.is(error)).toBe(true);
  expect((error as CombinedGraphQLErrors).errors).toMatchObject([
    {
      path: ['allPersons'],
      extensions: {
        code: 'DRAIN_LIMIT_EXCEEDED',
        drained: 60,
        resumeAfter: expect.any(String) as string,
      },
    },
  ]);
});

async function connectApollo(gateway: TestGateway) {
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  const client = new ApolloClient({
    link: new HttpLink({ uri: `${server.url}/graphql` }),
    cache: new InMemoryCache(),
    // Under exactOptionalPropertyTypes, Apollo's own handlers do not fit its type.
    incrementalHandler:
      new Defer20220824Handler() as ApolloClient.Options['incrementalHandler'] & {},
  });
  return {
    client,
    [Symbol.asyncDispose]: async () => {
      client.stop();
      await server.close();
    },
  };
}
