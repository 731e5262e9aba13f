import { GraphQLError, parse, print } from 'graphql';
import { expect, test } from 'vitest';
import { readConfig, type Config } from '../../src/config.ts';
import { createManagedExecutor } from '../../src/gateway.ts';
import { keeperParts } from '../../src/setup/custody.ts';
import { NO_EMERGENCY } from '../../src/tokens/emergency.ts';
import { machineWith } from '../support/gateway/gateway.ts';
import { agingParts, refreshedOnce } from '../support/gateway/over-service.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { startServer } from '../support/test-server.ts';
import { startService, type Reply, type ServiceOptions } from '../service/service.ts';
import { fullService } from '../service/full.ts';
import { after, honest, json, silence, text } from '../service/replies.ts';

const PAGE = parse('query Page($first: Int) { persons(first: $first) { items { id } } }');
const ONE = { data: { persons: { items: [{ id: expect.any(String) }] } } };

test('a document is sent with its variables and a managed token, and nothing of its context', async () => {
  await using service = await startManagedExecutor();
  const result = await service.execute({
    document: PAGE,
    variables: { first: 1 },
    operationName: 'Page',
    context: { secret: 'of the caller' },
    extensions: { headers: { authorization: 'Bearer of the caller' } },
  });
  expect(result).toEqual(ONE);
  const { body, token } = service.upstream.received[0]!;
  expect(JSON.parse(body)).toEqual({
    query: print(PAGE),
    operationName: 'Page',
    variables: { first: 1 },
  });
  expect(token).toMatch(/^\S{16,}$/);
  expect(token).not.toContain('caller');
});

test('errors of the service are GraphQL errors with their path, locations and extensions', async () => {
  await using service = await startManagedExecutor({ schema: fullService().schema });
  const result = await service.execute({ document: parse('{ failing me { id } }') });
  expect(result.data).toEqual({ failing: null, me: { id: 1 } });
  expect(result.errors![0]!.toJSON()).toEqual({
    message: 'This field always fails.',
    // Of the document that was sent, which is printed anew.
    locations: [{ line: 2, column: 3 }],
    path: ['failing'],
    extensions: { code: 'ALWAYS', hint: { deep: [1] } },
  });
});

const UNCLEAR = { message: 'The recruiting service reported an error.', path: undefined };
const UNUSABLE = { errors: [{ extensions: { code: 'UPSTREAM_BAD_RESPONSE' } }] };

test.each<[string, Reply, object]>([
  [
    'errors in no valid form, and extensions',
    json({ data: null, errors: [null, { message: 5, path: 'x' }], extensions: { cost: 1 } }),
    { data: null, extensions: { cost: 1 }, errors: [UNCLEAR, UNCLEAR] },
  ],
  ['a page of another program', text('<html>'), UNUSABLE],
  ['broken JSON that looks like data', text('{"data":{"persons":oops}}'), UNUSABLE],
])('a request always has a result: %s', async (_what, reply, expected) => {
  await using service = await startManagedExecutor();
  service.upstream.answer(reply);
  const result = await service.execute({ document: PAGE });
  expect(result).toMatchObject(expected);
  for (const error of result.errors!) expect(error).toBeInstanceOf(GraphQLError);
});

test('a request whose signal is aborted throws the reason, and is ended', async () => {
  await using service = await startManagedExecutor();
  service.upstream.answer(silence);
  const leaving = new AbortController();
  const result = service.execute({ document: PAGE, signal: leaving.signal });
  await service.upstream.arrived(1);
  leaving.abort(new Error('The caller has left.'));
  await expect(result).rejects.toThrow('The caller has left.');
  expect(await service.upstream.received[0]!.over).toBe('cut');
});

test('equal queries in flight are sent once, and a change of one result is not seen in the other', async () => {
  await using service = await startManagedExecutor();
  const gate = Promise.withResolvers<void>();
  service.upstream.answer(after(gate.promise, honest));
  const request = { document: PAGE, variables: { first: 1 } };
  const sent = [service.execute(request), service.execute(request)];
  await service.upstream.arrived(1);
  gate.resolve();
  const [first, second] = (await Promise.all(sent)) as { data: { persons: unknown } }[];
  first!.data.persons = 'changed';
  expect(second).toEqual(ONE);
  expect(service.upstream.received).toHaveLength(1);
});

test.each([
  ['a subscription', 'subscription { hired { id } }', undefined, 'no subscriptions'],
  ['a document with several operations', 'query A { a } query B { b }', undefined, 'operationName'],
  ['an operation that the document does not have', 'query A { a }', 'C', 'operationName'],
])('%s is refused, and not sent', async (_what, document, operationName, words) => {
  await using service = await startManagedExecutor();
  const result = await service.execute({
    document: parse(document),
    ...(operationName !== undefined && { operationName }),
  });
  expect(result.errors).toMatchObject([
    { message: expect.stringContaining(words), extensions: { code: 'BAD_USER_INPUT' } },
  ]);
  expect(service.upstream.received).toEqual([]);
});

test('requests go through the proxy that the environment names', async () => {
  const seen: unknown[] = [];
  const proxy = await startServer((request, response) => {
    seen.push(request.url);
    response.end('{"data":{"echo":"by the proxy"}}');
  });
  await using service = await startManagedExecutor({}, { HTTP_PROXY: proxy });
  const result = await service.execute({ document: PAGE });
  expect(result).toEqual({ data: { echo: 'by the proxy' } });
  expect(seen).toEqual([`${service.upstream.url}/graphql`]);
});

/** The executor by itself. Its token set was imported, and refreshed once a minute ago. Retries do not wait. */
async function startManagedExecutor(
  upstreamOptions: ServiceOptions = {},
  proxies: Readonly<Record<string, string>> = {},
) {
  const upstream = await startService(upstreamOptions);
  const config = {
    ...readConfig({}, () => ''),
    recruitingUrl: upstream.url,
    tokenLink: upstream.tokenLink,
    upstreamTimeoutMs: 1_000,
  } as Config & { recruitingUrl: string };
  const { store, clock, age } = agingParts();
  const { log } = recordingLog();
  const machine = machineWith(clock);
  const tokens = keeperParts(config, { store, emergency: NO_EMERGENCY, machine, log });
  const executor = await createManagedExecutor({ config, tokens, proxies, clock, log });
  await refreshedOnce(store);
  age(60_000);
  return {
    execute: executor.execute,
    upstream,
    [Symbol.asyncDispose]: async () => {
      await executor.close();
      await store.close();
      await upstream[Symbol.asyncDispose]();
    },
  };
}
