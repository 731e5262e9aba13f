import { afterAll, beforeAll, expect, test } from 'vitest';
import { listen, type Listening } from '../../../src/http/listen.ts';
import { entryFor } from '../../support/gateway/api-key.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import { honest, json } from '../../support/imitations/scripted.ts';
import { gathered, next, partsOf } from '../../support/clients/multipart.ts';
import { startIssuer, type Issuer } from '../auth/issuer.ts';

const KEY = 'rsk_of-the-portal-0123456789012345678901';

let issuer: Issuer;
let gateway: GatewayOverFake;
let server: Listening;
beforeAll(async () => {
  issuer = await startIssuer();
  const apiKeys = [entryFor(KEY, 'portal', 'read')];
  const auth = { apiKeys, jwt: issuer.jwt };
  gateway = await startGatewayOverFake({ persons: 260 }, { config: { auth } });
  server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await server.close();
  await gateway[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});

test('the log line of a request has its operation, outcome, cost and API key', async () => {
  gateway.upstream.answer(honest);
  await (await ask('{ allPersons { id } }')).text();
  expect(await line()).toEqual({
    level: 30,
    time: expect.any(Number),
    pid: expect.any(Number),
    hostname: expect.any(String),
    requestId: expect.any(String),
    method: 'POST',
    path: '/graphql',
    status: 200,
    ms: expect.any(Number),
    operationType: 'query',
    caller: 'portal',
    upstreamRequests: 6,
    pages: 6,
    msg: 'request',
  });
});

test('the log line has the code of the first error, and no text of the service', async () => {
  gateway.upstream.answer(
    json({ data: null, errors: [{ message: 'of Max', extensions: { code: 'Max Mustermann' } }] }),
  );
  await (await ask('query OfMax { Max: persons { items { id } } }')).text();
  const said = await line();
  expect(said).toMatchObject({ status: 200, code: 'OTHER' });
  expect(JSON.stringify(said)).not.toContain('Max');
  gateway.upstream.answer(json({ errors: [{ message: 'of Max' }] }));
  await (await ask('{ allPersons { id } }')).text();
  expect(await line()).toMatchObject({ code: 'OTHER' });

  await (await ask('{ persons(first: -1) { items { id } } nothing }')).text();
  expect(await line()).toMatchObject({ status: 200, code: 'BAD_USER_INPUT' });
  await (await ask('mutation { nothing }', { 'x-api-key': 'of Max' })).text();
  expect(await line()).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
});

test.each([
  ['PAGES_PER_MINUTE', 'RATE_LIMITED', { pagesPerMinute: 1 }, honest],
  ['UPSTREAM_TIMEOUT_MS', 'UPSTREAM_TIMEOUT', { upstreamTimeoutMs: 50 }, () => {}],
])('a request that reached %s has it in its error and in its line', async (...row) => {
  const [limit, code, config, reply] = row;
  await using limited = await startGatewayOverFake({ persons: 100 }, { config });
  limited.upstream.answer(reply);
  const { errors } = await limited.ask('{ personsConnection(first: 60) { nodes { id } } }');
  expect(errors).toMatchObject([{ extensions: { code, limit } }]);
  const lines = () => limited.logged.filter(({ msg }) => msg === 'request');
  await expect.poll(lines).toMatchObject([{ code, limit }]);
});

test('the subject of a token is not logged, because it may be a person', async () => {
  gateway.upstream.answer(honest);
  const token = await issuer.token({ sub: 'max.mustermann' });
  const answer = await ask('{ __typename }', { authorization: `Bearer ${token}` });
  expect(await answer.json()).toEqual({ data: { __typename: 'Query' } });
  expect(await line()).toMatchObject({ status: 200, operationType: 'query' });
  expect(JSON.stringify(gateway.logged)).not.toContain('mustermann');
});

test('a stream is logged when it ends, with the error that interrupted it', async () => {
  gateway.upstream.answer(honest, honest, json({}, 400));
  const response = await ask('{ allPersons @stream { id firstName } }', {}, 'multipart/mixed');
  const parts = partsOf(response);
  await next(parts);
  expect(gateway.logged.filter(({ msg }) => msg === 'request')).toEqual([]);
  await gathered(parts);
  expect(await line()).toMatchObject({ status: 200, code: 'DRAIN_INTERRUPTED', pages: 2 });
});

test('probes are logged only at debug level, and other paths are not taken for probes', async () => {
  for (const [path, status] of [
    ['/health', 200],
    ['/ready', 200],
  ] as const) {
    expect((await fetch(server.url + path)).status).toBe(status);
    expect(await line()).toMatchObject({ level: 20, path, status });
  }
  for (const path of ['/x/health', '/x/ready', '/health/', '//health']) {
    expect((await fetch(server.url + path)).status).toBe(401);
    expect(await line()).toMatchObject({ level: 30, status: 401 });
  }
  expect((await fetch(`${server.url}/graphql?query=/health`)).status).toBe(401);
  expect(await line()).toMatchObject({ level: 30, path: '/graphql', status: 401 });
});

test.each([
  ['graphql-client-name', 'graphql-client-version'],
  ['apollographql-client-name', 'apollographql-client-version'],
])(
  'a client that sends %s is named in the log, if that is the name of an application',
  async (name, version) => {
    await (await ask('{ __typename }', { [name]: 'people-web', [version]: '1.2.0' })).text();
    expect(await line()).toMatchObject({ client: 'people-web', clientVersion: '1.2.0' });
    for (const odd of ['-x', 'a"b', 'x'.repeat(65), '{}']) {
      await (await ask('{ __typename }', { [name]: odd, [version]: odd })).text();
      const said = await line();
      expect([said['client'], said['clientVersion']]).toEqual([undefined, undefined]);
    }
  },
);

test('unknown paths are not logged: they may contain a key, or name people', async () => {
  await fetch(`${server.url}/rsk_secret/max@example.com?of=Max`);
  const said = await line();
  expect(said).toMatchObject({ method: 'GET', status: 401 });
  expect(JSON.stringify(said)).not.toMatch(/rsk_|max@|of=/);
});

/** The next log line of a request. Each line is returned once. */
async function line(): Promise<Record<string, unknown>> {
  await expect.poll(() => gateway.logged.some(isLine), { interval: 2, timeout: 10_000 }).toBe(true);
  const [said] = gateway.logged.splice(gateway.logged.findIndex(isLine), 1);
  return said!;
}

const isLine = ({ msg }: Record<string, unknown>) => msg === 'request';

/** Sends an operation with the API key, unless the headers have another credential. */
function ask(
  query: string,
  headers: Record<string, string> = {},
  accept = 'application/json',
): Promise<Response> {
  const credential = headers['authorization'] === undefined ? { 'x-api-key': KEY } : {};
  return fetch(`${server.url}/graphql?of=Max`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept, ...credential, ...headers },
    body: JSON.stringify({ query }),
  });
}
