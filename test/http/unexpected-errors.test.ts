import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../service/service.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { honest, refusal } from '../service/replies.ts';
import { ask } from '../support/clients/multipart.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { breakableStore } from '../support/gateway/stores.ts';

const DAY = 86_400_000;
const ELSEWHERE = 'https://internal.example.test';

/** Reports errors that are not meant for callers, as trackers of errors do: those with an `originalError`. */
const tracker = (thrown: unknown[]): Plugin => ({
  onExecute: () => ({
    onExecuteDone({ result }) {
      const { errors = [] } = result as { errors?: readonly GraphQLError[] };
      for (const { originalError } of errors) {
        if (originalError && !(originalError instanceof GraphQLError)) thrown.push(originalError);
      }
    },
  }),
});

test('a stored pair that cannot be used is reported by an id, which is logged with the cause, and to a plugin as it was thrown', async () => {
  let now = Date.now();
  const service = await startService({ now: () => now });
  const { store, broken } = breakableStore(ELSEWHERE);
  const thrown: unknown[] = [];
  const gateway = await startGateway(service, { store, plugins: [tracker(thrown)] });
  onTestFinished(async () => {
    broken.is = false;
    await gateway[Symbol.asyncDispose]();
    await service.close();
  });
  const query = '{ persons(first: 1) { items { id } } }';
  await expect
    .poll(() => gateway.logged, { interval: 2, timeout: 10_000 })
    .toContainEqual(expect.objectContaining({ msg: 'access token refreshed' }));
  expect((await gateway.ask(query)).errors).toBeUndefined();

  // The service refuses the expired token, and the pair in the store cannot be used.
  broken.is = true;
  now += 2 * DAY;
  const headers = { 'x-request-id': 'of-the-caller' };
  const { data, errors } = await gateway.ask(query, {}, { headers });
  expect(data).toBeNull();
  expect(errors).toEqual([
    {
      message: expect.stringContaining('Report this id to its operator: '),
      path: ['persons'],
      extensions: { code: 'INTERNAL_SERVER_ERROR', id: expect.any(String) },
    },
  ]);
  const { id } = errors![0]!.extensions as { id: string };
  expect(errors![0]!.message).toContain(id);
  expect(JSON.stringify(errors)).not.toContain(ELSEWHERE);
  const [request] = gateway.logged.filter(({ msg, code }) => msg === 'request' && code);
  expect(request).toMatchObject({ requestId: 'of-the-caller', errorId: id });
  const logged = gateway.logged.filter(({ msg }) => msg === 'unexpected error');
  expect(logged.map(({ errorId }) => errorId)).toEqual([id]);
  expect(logged).toMatchObject([
    {
      level: 50,
      requestId: 'of-the-caller',
      msg: 'unexpected error',
      err: { message: expect.stringContaining(ELSEWHERE) },
    },
  ]);

  expect(thrown).toEqual([
    expect.objectContaining({ message: expect.stringContaining(ELSEWHERE) as string }),
  ]);

  broken.is = false;
  now -= 2 * DAY;
  expect((await gateway.fetch('/ready')).status).toBe(200);
  expect((await gateway.ask(query)).errors).toBeUndefined();
});

type Answering = readonly [query: string, accept: string];
const DRAIN: Answering = ['{ allPersons { id } }', 'application/json'];
const STREAM: Answering = ['{ allPersons @stream { id } }', 'multipart/mixed'];

test.each<[string, Answering, RegExp, detail: string]>([
  ['an unexpected error', DRAIN, /"code":"DRAIN_INTERRUPTED"/, 'token_expired'],
  ['an unexpected error', STREAM, /"code":"DRAIN_INTERRUPTED"/, 'token_expired'],
  [
    'a refused access token',
    DRAIN,
    /temporarily unavailable, until the operator of this gateway has acted.*"reason":"UPSTREAM_UNAUTHORIZED"/,
    'blocked',
  ],
])('%s that interrupts %j tells its caller an id, and the log why', async (what, ...row) => {
  const [[query, accept], told, detail] = row;
  const { store, broken } = breakableStore(ELSEWHERE);
  await using gateway = await startGatewayOverService(
    {},
    { store, config: { drainConcurrency: 1 } },
  );
  gateway.service.answer(honest, (...exchange) => {
    broken.is = detail === 'token_expired';
    return refusal(detail, broken.is ? 401 : 403)(...exchange);
  });
  const text = await (await ask(gateway, query, {}, accept)).text();
  broken.is = false;
  expect(text).toMatch(told);
  expect(text).not.toMatch(/internal\.example|administrator|access token/);
  const [, id] = /Report this id to the operator of the gateway: ([\w-]+)/.exec(text) ?? [];
  const isLine = (line: Record<string, unknown>) =>
    line['errorId'] === id && line['msg'] !== 'request';
  const message = what.includes('token') ? "refuses the gateway's access token" : ELSEWHERE;
  expect(gateway.logged.filter(isLine)).toMatchObject([
    { level: 50, err: { message: expect.stringContaining(message) } },
  ]);
});
