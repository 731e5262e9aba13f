import { createHash } from 'node:crypto';
import { isAsyncIterable, type ExecutionResult } from '@graphql-tools/utils';
import { parse } from 'graphql';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { createGateway, type Gateway, type Settings } from '../../src/library/index.ts';
import { startService, type Service, type ServiceOptions } from '../service/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let sandbox: Service;
let gateway: Gateway;
let close: () => Promise<void>;
const key = 'rsk_of-the-portal';
const entry = `portal:${createHash('sha256').update(key).digest('hex')}:read+drain`;
beforeAll(async () => {
  ({ sandbox, gateway, close } = await open(
    { persons: 120 },
    // A whole drain is three pages; the program needs no key.
    { AUTH_API_KEYS: entry, PAGES_PER_MINUTE: 20 },
  ));
});
afterAll(() => close());

test('the program executes operations of what is served, without a credential', async () => {
  const document = parse(
    'query Last($n: Int) { personsConnection(last: $n) { nodes { id } pageInfo { hasNextPage } } }',
  );
  expect(await gateway.executor({ document, variables: { n: 2 } })).toEqual({
    data: {
      personsConnection: { nodes: ids().slice(-2), pageInfo: { hasNextPage: false } },
    },
  });
});

test('an operation with @stream is executed in parts', async () => {
  const parts = await gateway.executor({
    document: parse('{ allPersons @stream(initialCount: 1) { id } }'),
  });
  if (!isAsyncIterable(parts)) throw new Error('It was executed whole.');
  const results: ExecutionResult[] = [];
  for await (const result of parts) results.push(result);
  expect(results.length).toBeGreaterThan(2);
  expect(JSON.stringify(results).match(/"id"/g)).toHaveLength(120);
});

test('variables that are nested too deeply are refused', async () => {
  let deep: object = {};
  for (let level = 0; level < 30_000; level += 1) deep = { deep };
  const query = 'query ($of: [_Any!]!) { _entities(representations: $of) { __typename } }';
  expect(
    await gateway.executor({ document: parse(query), variables: { of: [deep] } }),
  ).toMatchObject({ errors: [{ extensions: { code: 'OPERATION_TOO_COMPLEX' } }] });
});

test('a failure is a result with errors', async () => {
  const negative = '{ personsConnection(first: -1) { nodes { id } } }';
  expect(await gateway.executor({ document: parse(negative) })).toMatchObject({
    errors: [{ path: ['personsConnection'], extensions: { code: 'BAD_USER_INPUT' } }],
  });
  expect(await gateway.executor({ document: parse('{ nobody }') })).toMatchObject({
    errors: [{ message: expect.stringContaining('"nobody"') }],
  });
});

test('the program has the budget of one caller, and takes nothing from that of others', async () => {
  const drain = { document: parse('{ allPersons { id } }') };
  await vi.waitFor(async () => {
    expect(await gateway.executor(drain)).toMatchObject({
      errors: [{ extensions: { code: 'RATE_LIMITED', retryAfter: expect.any(Number) } }],
    });
  });
  const answer = await gateway.fetch('http://localhost/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: JSON.stringify({ query: '{ allPersons { id } }' }),
  });
  expect(await answer.json()).toEqual({ data: { allPersons: ids() } });
});

test('the signal of a request ends what only that request waits for', async () => {
  const slow = await open({ latency: 30_000 }, { ALLOW_ANONYMOUS: true });
  onTestFinished(() => slow.close());
  const leaving = new AbortController();
  const document = parse('{ allPersons { id } }');
  const result = slow.gateway.executor({ document, signal: leaving.signal });
  await vi.waitFor(() => expect(slow.sandbox.stats.inFlight).toBe(1), 10_000);
  leaving.abort();
  expect(await result).toMatchObject({ errors: [expect.anything()] });
  await vi.waitFor(() => expect(slow.sandbox.stats.inFlight).toBe(0), 10_000);
});

function ids(): { id: string }[] {
  return sandbox.persons.all().map(({ id }) => ({ id }));
}

async function open(options: ServiceOptions, settings: Settings) {
  const folder = temporaryFolder();
  const started = await startService(options);
  const opened = await createGateway({
    settings: {
      RECRUITING_URL: started.url,
      TOKEN_LINK: started.tokenLink,
      TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
      LOG_LEVEL: 'silent',
      ...settings,
    },
  });
  return {
    sandbox: started,
    gateway: opened,
    close: async () => {
      await opened.close();
      await started.close();
      folder[Symbol.dispose]();
    },
  };
}
