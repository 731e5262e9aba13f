import { GraphQLError, parse } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { expect, test } from 'vitest';
import { honest, refusal } from '../service/replies.ts';
import type { Reply } from '../service/service.ts';
import { ask, type Payload } from '../support/clients/multipart.ts';
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

test('a stored pair that cannot be used is reported by an id, which is logged with the cause, and to a plugin as it was thrown', async () => {
  const thrown: unknown[] = [];
  await using gateway = await start([tracker(thrown)]);
  gateway.service.answer(gateway.expired);
  const query = '{ persons(first: 1) { items { id } } }';
  const headers = { 'x-request-id': 'of-the-caller' };
  const { data, errors } = await gateway.ask(query, {}, { headers });
  gateway.repair();
  expect(data).toBeNull();
  const { id } = errors![0]!.extensions as { id: string };
  const message = expect.stringContaining(`Report this id to its operator: ${id}`) as string;
  expect(errors).toEqual([
    { message, path: ['persons'], extensions: { code: 'INTERNAL_SERVER_ERROR', id } },
  ]);
  expect(JSON.stringify(errors)).not.toContain(ELSEWHERE);
  const cause = expect.objectContaining({ message: expect.stringContaining(ELSEWHERE) }) as Error;
  const lines = gateway.logged.filter(({ errorId }) => errorId === id);
  expect(lines).toMatchObject([
    { level: 50, requestId: 'of-the-caller', msg: 'unexpected error', err: cause },
    { requestId: 'of-the-caller', msg: 'request' },
  ]);
  expect(thrown).toEqual([cause]);
  expect((await gateway.ask(query)).errors).toBeUndefined();
});

const INTERRUPTED = /"code":"DRAIN_INTERRUPTED"/;
const UNAUTHORIZED =
  /temporarily unavailable, until the operator .* has acted.*"UPSTREAM_UNAUTHORIZED"/;
test.each<[string, query: string, accept: string, RegExp]>([
  ['an unexpected error', '{ allPersons { id } }', 'application/json', INTERRUPTED],
  ['an unexpected error', '{ allPersons @stream { id } }', 'multipart/mixed', INTERRUPTED],
  ['an unexpected error', '{ allPersons @stream { id } }', 'of the program', INTERRUPTED],
  ['a refused access token', '{ allPersons { id } }', 'application/json', UNAUTHORIZED],
])('%s that interrupts %s tells its caller an id, and the log why', async (what, ...row) => {
  const [query, accept, told] = row;
  const isRefused = what.includes('token');
  await using gateway = await start();
  gateway.service.answer(honest, isRefused ? refusal('blocked', 403) : gateway.expired);
  const executed = async () => {
    const parts = await gateway.gateway.executor({ document: parse(query) });
    return JSON.stringify(await Array.fromAsync(parts as AsyncIterable<Payload>));
  };
  const asked = async () => (await ask(gateway, query, {}, accept)).text();
  const text = await (accept === 'of the program' ? executed : asked)();
  gateway.repair();
  expect(text).toMatch(told);
  expect(text).not.toMatch(/internal\.example|administrator|access token/);
  const [, id] = /Report this id to the operator of the gateway: ([\w-]+)/.exec(text) ?? [];
  const lines = gateway.logged.filter(({ errorId, msg }) => errorId === id && msg !== 'request');
  const message = isRefused ? "refuses the gateway's access token" : ELSEWHERE;
  expect(lines).toMatchObject([{ level: 50, err: { message: expect.stringContaining(message) } }]);
});

test('the same trouble is logged once in ten seconds, and each request that meets it logs the id of that line', async () => {
  await using gateway = await start();
  gateway.service.answer(refusal('blocked', 403));
  const page = '{ persons(first: 1) { items { id } } }';
  const ids: unknown[] = [];
  for (const ms of [0, 5_000, 5_000]) {
    gateway.age(ms);
    for (const { errors } of await Promise.all([gateway.ask(page), gateway.ask(page)])) {
      ids.push(errors![0]!.extensions['id']);
    }
  }
  const [first, last] = [ids[0], ids.at(-1)];
  expect(ids).toEqual([first, first, first, first, last, last]);
  const lines = gateway.logged.filter(({ errorId, msg }) => errorId && msg !== 'request');
  expect(lines).toMatchObject([{ errorId: first }, { errorId: last }]);
  const requests = gateway.logged.filter(({ msg }) => msg === 'request');
  expect(requests.map(({ errorId }) => errorId)).toEqual(ids);
});
