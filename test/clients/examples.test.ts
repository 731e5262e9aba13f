import { NetworkStatus } from '@apollo/client';
import { Client, fetchExchange } from '@urql/core';
import { filter, firstValueFrom, tap } from 'rxjs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { loadPartial, withPatience } from '../../examples/apollo/errors.ts';
import type { PeopleQuery, PeopleQueryVariables } from '../../examples/apollo/generated/graphql.ts';
import * as apollo from '../../examples/apollo/people.ts';
import * as urql from '../../examples/urql/people.ts';
import { systemClock, type Clock } from '../../src/clock.ts';
import { listen } from '../../src/http/listen.ts';
import { gathered, partsOf, putTogether } from '../support/clients/multipart.ts';
import { blockWith } from '../support/docs/documents.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';

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
async function startServed(config: TestGatewayOptions['config'] = {}, clock: Clock = systemClock) {
  const started = await startGatewayOverService(
    { persons: 137 },
    { config: { auth, ...config }, clock },
  );
  const server = await listen(started.gateway.handler, { host: '127.0.0.1', port: 0 });
  return {
    ...started,
    url: `${server.url}/graphql`,
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await started[Symbol.asyncDispose]();
    },
  };
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
  const query = '{ allPersons @stream(label: "all", initialCount: 3) { id } }';
  const ids = await new Promise<unknown[]>((done) => {
    client.query<AllPersons>(query, {}).subscribe(({ data, hasNext }) => {
      lengths.push(data?.allPersons.length ?? 0);
      if (!hasNext) done(data!.allPersons.map(({ id }) => id));
    });
  });
  expect(ids).toEqual(everybody());
  expect(lengths[0]).toBe(3);
  expect(lengths).toEqual(lengths.toSorted((left, right) => left - right));
  expect(new Set(lengths).size).toBeGreaterThan(3);
});

interface AllPersons {
  readonly allPersons: readonly { readonly id: string }[];
}

test('the command of docs/clients.md streams every record', async () => {
  const command = blockWith('docs/clients.md', 'curl -N');
  const headers = [...command.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, ...header]) => header);
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...(Object.fromEntries(headers) as Record<string, string>), ...credential() },
    body: /-d '([^']+)'/.exec(command)![1]!,
  });
  expect(putTogether(await gathered(partsOf(response)))!['allPersons']).toHaveLength(137);
});

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
  await using busy = await startBusy();
  const client = apollo.createClient(busy.url, credential);
  const times: number[] = [];
  const send = (page: PeopleQueryVariables) => () => {
    times.push(performance.now());
    const sent = client.query({
      query: apollo.PEOPLE,
      variables: page,
      fetchPolicy: 'network-only',
    });
    return sent.finally(() => busy.clock.jump(SECOND));
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

test('urql needs preferGetMethod: false, because a GET without a credential is refused', async () => {
  await using open = await startServed({ auth: undefined });
  const client = new Client({ url: open.url, exchanges: [fetchExchange] });
  const { error } = await client.query('{ persons(first: 1) { items { id } } }', {});
  expect(error?.message).toContain('apollo-require-preflight');
});

/** Its caller has used up all pages but gets another one after each second of its clock. The total is kept. */
async function startBusy() {
  const clock = new ManualClock();
  const busy = await startServed({ pagesPerMinute: 60 }, clock);
  const spend = async (query: string): Promise<string> => {
    const response = await fetch(busy.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...credential() },
      body: JSON.stringify({ query }),
    });
    return response.text();
  };
  await spend('{ personsConnection { totalCount } }');
  for (let page = 0; page <= 60; page += 1) {
    if ((await spend('{ persons(first: 1) { items { id } } }')).includes('RATE_LIMITED')) break;
  }
  return { ...busy, clock };
}

function everybody(): string[] {
  return gateway.service.persons.all().map(({ id }) => id);
}
