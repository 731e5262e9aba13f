import { GraphQLError, parse } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { expect, test } from 'vitest';
import { honest, refusal } from '../service/replies.ts';
import type { Reply } from '../service/service.ts';
import { ask } from '../support/clients/multipart.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { breakableStore } from '../support/gateway/stores.ts';

const ELSEWHERE = 'https://internal.example.test';

/** Reports errors that are not meant for callers, as trackers of errors do: those with an `originalError`. */
const tracker = (thrown: unknown[]): Plugin => ({
  onExecute: () => ({
    onExecuteDone({ result }) {
      const { errors = [] } = result as { errors?: readonly GraphQLError[] };
      const originals = errors.flatMap(({ originalError }) => originalError ?? []);
      thrown.push(...originals.filter((error) => !(error instanceof GraphQLError)));
    },
  }),
});

/** A gateway in front of a service that refuses its tokens. Those in the store cannot be used then. */
async function start(plugins: Plugin[] = []) {
  const { store, broken } = breakableStore(ELSEWHERE);
  const config = { drainConcurrency: 1 };
  const gateway = await startGatewayOverService({}, { store, plugins, config });
  const expired: Reply = (...exchange) => {
    broken.is = true;
    return refusal('token_expired')(...exchange);
  };
  const repair = () => {
    broken.is = false;
    gateway.service.answer(honest);
  };
  return { ...gateway, expired, repair };
}

test('a stored pair that cannot be used is reported by the id of the request, which is logged with the cause, and to a plugin as it was thrown', async () => {
  const thrown: unknown[] = [];
  await using gateway = await start([tracker(thrown)]);
  gateway.service.answer(gateway.expired);
  const query = '{ persons(first: 1) { items { id } } }';
  const headers = { 'x-request-id': 'of-the-caller' };
  const { data, errors } = await gateway.ask(query, {}, { headers });
  gateway.repair();
  expect(data).toBeNull();
  const id = 'of-the-caller';
  const message = expect.stringContaining(`Report this id to its operator: ${id}`) as string;
  expect(errors).toEqual([
    { message, path: ['persons'], extensions: { code: 'INTERNAL_SERVER_ERROR', id } },
  ]);
  expect(JSON.stringify(errors)).not.toContain(ELSEWHERE);
  const cause = expect.objectContaining({ message: expect.stringContaining(ELSEWHERE) }) as Error;
  const lines = gateway.logged.filter(({ requestId, level }) => requestId === id && level !== 20);
  expect(lines).toMatchObject([
    { level: 50, msg: 'unexpected error', err: cause },
    { msg: 'request' },
  ]);
  expect(thrown).toEqual([cause]);
  expect((await gateway.ask(query)).errors).toBeUndefined();
});

const INTERRUPTED = /"code":"DRAIN_INTERRUPTED"/;
const UNAUTHORIZED =
  /temporarily unavailable, until the operator .* has acted.*"UPSTREAM_UNAUTHORIZED"/;
test.each<[string, query: string, accept: string, RegExp, ...Plugin[]]>([
  ['an unexpected error', '{ allPersons { id } }', 'application/json', INTERRUPTED],
  ['an unexpected error', '{ allPersons @stream { id } }', 'multipart/mixed', INTERRUPTED],
  [
    'an unexpected error',
    '{ allPersons @stream { id } }',
    'multipart/mixed',
    INTERRUPTED,
    tracker([]),
  ],
  ['an unexpected error', '{ allPersons @stream { id } }', 'of the program', INTERRUPTED],
  ['a refused access token', '{ allPersons { id } }', 'application/json', UNAUTHORIZED],
])('%s that interrupts %s tells its caller an id, and the log why', async (what, ...row) => {
  const [query, accept, told, ...plugins] = row;
  const isRefused = what.includes('token');
  await using gateway = await start(plugins);
  gateway.service.answer(honest, isRefused ? refusal('blocked', 403) : gateway.expired);
  const executed = async () =>
    JSON.stringify(await gateway.gateway.executor({ document: parse(query) }));
  const asked = async () => (await ask(gateway, query, {}, accept)).text();
  const text = await (accept === 'of the program' ? executed : asked)();
  gateway.repair();
  expect(text).toMatch(told);
  expect(text).not.toMatch(/internal\.example|administrator|access token/);
  const [, id] = /Report this id to the operator of the gateway: ([\w-]+)/.exec(text) ?? [];
  const lines = gateway.logged.filter(
    ({ requestId, level, err }) => requestId === id && level !== 20 && err,
  );
  const message = isRefused ? "refuses the gateway's access token" : ELSEWHERE;
  expect(lines).toMatchObject([{ level: 50, err: { message: expect.stringContaining(message) } }]);
});

test('a trouble is logged in one line of each request that meets it, however many of its fields do', async () => {
  await using gateway = await start();
  gateway.service.answer(refusal('blocked', 403));
  const query = '{ a: persons(first: 1) { items { id } } allPersons { id } }';
  const ids = ['one', 'two'];
  for (const id of ids) {
    const { errors } = await gateway.ask(query, {}, { headers: { 'x-request-id': id } });
    expect(errors!.map(({ extensions }) => extensions['id'])).toEqual([id, id]);
  }
  const lines = gateway.logged.filter(({ msg }) =>
    String(msg).startsWith('the recruiting service was reported'),
  );
  expect(lines.map(({ requestId }) => requestId)).toEqual(ids);
});
