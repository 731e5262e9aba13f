import { NetworkStatus } from '@apollo/client';
import { Client, fetchExchange } from '@urql/core';
import { filter, firstValueFrom, tap } from 'rxjs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { loadPartial, withPatience } from '../../examples/apollo/errors.ts';
import type { PeopleQuery, PeopleQueryVariables } from '../../examples/apollo/generated/graphql.ts';
import * as apollo from '../../examples/apollo/people.ts';
import * as urql from '../../examples/urql/people.ts';
import { honest, json } from '../service/replies.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { startFront } from '../support/gateway/front.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';

const KEY = 'key-of-an-example';
const credential = () => ({ 'x-api-key': KEY });
const auth = {
  apiKeys: [entryFor(KEY, 'example', 'read', 'drain')],
  jwt: undefined,
};

let gateway: Awaited<ReturnType<typeof startServed>>;
let url: string;
beforeAll(async () => {
  gateway = await startServed();
  url = gateway.url;
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** A gateway with 137 people on a port, which answers only callers with the key. */
async function startServed(config: TestGatewayOptions['config'] = {}) {
  const front = await startFront({ persons: 137 }, { config: { auth, ...config } });
  return { ...front, url: `${front.url}/graphql` };
}

const CLIENTS: Readonly<Record<string, (size: object) => Promise<Pages>>> = {
  "urql's relayPagination": async (size) => {
    const client = urql.createClient(url, credential);
    let people = await urql.loadPeople(client, size);
    return {
      shown: () => people,
      more: async (cursor) => {
        people = await urql.loadPeople(client, { ...size, ...cursor });
      },
    };
  },
  "Apollo Client's relayStylePagination": async (size) => {
    const client = apollo.createClient(url, credential);
    const watched = apollo.watchPeople(client, size);
    onTestFinished(() => client.stop());
    await firstValueFrom(watched.pipe(filter(({ loading }) => !loading)));
    return {
      shown: () => (watched.getCurrentResult().data as PeopleQuery).personsConnection!,
      more: (cursor) => watched.fetchMore({ variables: { ...size, ...cursor } }),
    };
  },
};

/** What a client shows of a list. */
interface Pages {
  shown(): Pick<NonNullable<PeopleQuery['personsConnection']>, 'edges' | 'pageInfo'>;
  more(cursor: object): Promise<unknown>;
}

test.each(
  Object.entries(CLIENTS).flatMap(([name, pages]) => [
    [name, { first: 60 }, pages] as const,
    [name, { last: 60 }, pages] as const,
  ]),
)('%s joins the pages of a list: %j', async (_, size, pagesOf) => {
  const { shown, more } = await pagesOf(size);
  for (;;) {
    const { hasNextPage, hasPreviousPage, endCursor, startCursor } = shown().pageInfo;
    if ('first' in size ? !hasNextPage : !hasPreviousPage) break;
    await more('first' in size ? { after: endCursor } : { before: startCursor });
  }
  expect(shown().edges.map(({ node }) => node.id)).toEqual(everybody());
});

test('Apollo Client shows the whole list as it grows', async () => {
  const client = apollo.createClient(url, credential);
  const lengths: number[] = [];
  const { data } = await firstValueFrom(
    apollo.watchEverybody(client).pipe(
      tap((each) => lengths.push(each.data?.allPersons?.length ?? 0)),
      filter(({ networkStatus }) => networkStatus === NetworkStatus.ready),
    ),
  );
  expect(data?.allPersons?.map((person) => person.id)).toEqual(everybody());
  expect(lengths).toContain(50);
  client.stop();
});

test('urql shows more of a stream with each part', async () => {
  const client = new Client({
    url,
    preferGetMethod: false,
    exchanges: [fetchExchange],
    fetchOptions: { headers: credential() },
  });
  const lengths: number[] = [];
  const query = '{ allPersons @stream(label: "all") { id } }';
  const ids = await new Promise<unknown[]>((done) => {
    client.query<AllPersons>(query, {}).subscribe(({ data, hasNext }) => {
      lengths.push(data?.allPersons.length ?? 0);
      if (!hasNext) done(data!.allPersons.map(({ id }) => id));
    });
  });
  expect(ids).toEqual(everybody());
  expect(lengths.slice(0, 2)).toEqual([0, 50]);
  expect(lengths).toEqual(lengths.toSorted((left, right) => left - right));
  expect(new Set(lengths).size).toBeGreaterThan(2);
});

interface AllPersons {
  readonly allPersons: readonly { readonly id: string }[];
}

test('with errorPolicy "all", Apollo Client shows the edges beside a total that cannot be counted', async () => {
  await using limited = await startServed({ drainMaxItems: 60 });
  const client = apollo.createClient(limited.url, credential);
  const { data, failed } = await loadPartial(client, { first: 20 });
  expect(data?.personsConnection).toMatchObject({ totalCount: null });
  expect(data?.personsConnection?.edges).toHaveLength(20);
  expect(failed).toEqual(['personsConnection.totalCount: DRAIN_LIMIT_EXCEEDED']);
  client.stop();
});

test('a request of Apollo Client that is refused for a while is sent again after retryAfter, and no other is', async () => {
  const client = apollo.createClient(url, credential);
  const times: number[] = [];
  gateway.service.answer(json({}, 429, { 'retry-after': '1' }));
  const send = (page: PeopleQueryVariables) => () => {
    times.push(performance.now());
    return client
      .query({ query: apollo.PEOPLE, variables: page, fetchPolicy: 'network-only' })
      .finally(() => gateway.service.answer(honest));
  };
  const { data } = await withPatience(send({ first: 1 }));
  expect(data?.personsConnection?.edges).toHaveLength(1);
  expect(times).toHaveLength(2);
  expect(times[1]! - times[0]!).toBeGreaterThan(900);

  const failed = await withPatience(send({ after: 'damaged' })).catch((reason: unknown) => reason);
  expect(failed).toMatchObject({ errors: [{ extensions: { code: 'CURSOR_INVALID' } }] });
  expect(times).toHaveLength(3);
  client.stop();
});

function everybody(): string[] {
  return gateway.service.persons.all().map(({ id }) => id);
}
