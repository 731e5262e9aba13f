/** What a program gets that uses the gateway, or only its executor, in its own process. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { schemaFromExecutor, wrapSchema } from '@graphql-tools/wrap';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import { parse, printSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { Hono } from 'hono';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import ownField from '../../examples/own-field/gateway.config.ts';
import plugin from '../../examples/plugin/gateway.config.ts';
import { yoga as reviews } from '../../examples/second-service/reviews.ts';
import {
  createExecutor,
  createGateway,
  type Gateway,
  type GatewayConfig,
  type Settings,
} from '../../src/library/index.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import { openSqliteStore } from '../../src/tokens/sqlite.ts';
import { startService, type Service } from '../service/service.ts';
import { IN_PARTS } from '../support/clients/multipart.ts';
import { post } from '../support/clients/post.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startServer } from '../support/listening.ts';

let service: Service;
let folder: ReturnType<typeof temporaryFolder>;
let settings: Settings;
let ends: AsyncDisposableStack;
let ids: readonly { readonly id: string }[];
beforeEach(async () => {
  ends = new AsyncDisposableStack();
  service = await startService({ persons: 3 });
  ids = service.persons.all().map(({ id }) => ({ id }));
  folder = temporaryFolder('disk');
  settings = {
    RECRUITING_URL: service.url,
    TOKEN_LINK: service.tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    LOG_LEVEL: 'silent',
  };
});
afterEach(async () => {
  await ends.disposeAsync();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  await service.close();
  folder[Symbol.dispose]();
});

const KEY = 'rsk_of-the-portal';
const AUTH_API_KEYS = `portal:${createHash('sha256').update(KEY).digest('hex')}:read+drain`;
const ALL = '{ allPersons { id } }';
const PAGE = '{ persons { items { id } } }';

const failing = (more: object) => ({ errors: [more] });
const withCode = (code: unknown) => failing({ extensions: { code } });
const listeners = () => process.eventNames().map((name) => [name, process.listenerCount(name)]);

type Options = Partial<Parameters<typeof createGateway>[0]>;

/** Opens a gateway until the end of the test. */
async function open({ settings: others, ...options }: Options = {}) {
  const all = { ...settings, AUTH_API_KEYS, ...others };
  const gateway = await createGateway({ settings: all, ...options });
  ends.defer(() => gateway.close());
  const send = async (query: string) =>
    gateway.fetch('http://localhost/graphql', post({ query }, { 'x-api-key': KEY }));
  return {
    gateway,
    /** Sends an operation as a caller with a key, through `fetch`. */
    send,
    ask: async (query: string) => (await send(query)).json() as Promise<unknown>,
    /** Executes an operation as the program. */
    execute: async (query: string, variables: Record<string, unknown> = {}) =>
      gateway.executor({ document: parse(query), variables }),
  };
}

test.each<[string, Settings, object | undefined, RegExp]>([
  [
    'mistakes in the settings, all at once',
    { AUTH_API_KEYS: undefined, MAX_DRAINS: 0 },
    {},
    /^The configuration has 2 mistakes:\n {2}- [^]*MAX_DRAINS must be a whole number from 1 to/,
  ],
  ['a misspelled key', {}, { typeDef: '' }, /^config has a mistake:\n +- typeDef is/],
  [
    'a configuration that is only named',
    { GATEWAY_CONFIG: 'gateway.config.ts' },
    undefined,
    /Import the file that it names/,
  ],
  // The environment is read only by a program that passes it as the settings.
  [
    'no service, and opens no sandbox',
    { RECRUITING_URL: undefined },
    {},
    /URL is not set\. Set it/,
  ],
])('createGateway refuses %s, and opens nothing', async (_, wrong, config, mistake) => {
  vi.stubEnv('RECRUITING_URL', service.url);
  await expect(open({ settings: wrong, config })).rejects.toThrow(mistake);
  expect(existsSync(folder.file('tokens.db'))).toBe(false);
});

test('a gateway that cannot be opened leaves nothing open; settings are values or texts, and blank ones are not set', async () => {
  writeFileSync(folder.file('other.graphql'), 'type Query { a: Strin }');
  const RECRUITING_SCHEMA = folder.file('other.graphql');
  await expect(open({ settings: { RECRUITING_SCHEMA } })).rejects.toThrow('other.graphql');
  const others = { MAX_DEPTH: 2, MAX_TOKENS: undefined, MAX_ALIASES: ' ' };
  const { ask } = await open({ settings: others });
  expect(await ask(ALL)).toEqual({ data: { allPersons: ids } });
  expect(await ask(PAGE)).toMatchObject(withCode('OPERATION_TOO_COMPLEX'));
});

test('a gateway opens while its database is down, and answers with a code until it is up; its log names no values of errors', async () => {
  const TOKEN_STORE = 'postgres://me:secret@127.0.0.1:9/tokens';
  const { log, logged } = recordingLog();
  const { ask } = await open({ settings: { TOKEN_STORE, TOKEN_RESCUE_DIR: folder.path }, log });
  expect(await ask(ALL)).toMatchObject(withCode('INTERNAL_SERVER_ERROR'));
  // Described as in the gateway's own log, and not as pino does it.
  const described = expect.objectContaining({
    cause: expect.objectContaining({ type: 'StoreUnavailable' }),
  });
  expect(logged).toContainEqual(expect.objectContaining({ err: described }));
});

test('warnings go to the log of the program; without one, to the standard error', async () => {
  const sdl = readFileSync('schema/upstream.graphql', 'utf8');
  const RECRUITING_SCHEMA = folder.file('taken.graphql');
  writeFileSync(RECRUITING_SCHEMA, sdl.replace('type Query {', 'type Query { allPersons: Int'));
  const loud = { RECRUITING_SCHEMA, LOG_LEVEL: undefined };
  const { log, logged } = recordingLog();
  const { gateway } = await open({ settings: loud, log });
  await gateway.close();
  const warning = 'allPersons';
  expect(logged.map(({ msg }) => msg)).toContainEqual(expect.stringContaining(warning));

  const stdout = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  await (await open({ settings: loud })).ask('{ __typename }');
  const line = new RegExp(`^\\{"level":40,[^\\n]*"msg":"[^\\n]*${warning}[^\\n]*\\n$`);
  await vi.waitFor(() => expect(String(stderr.mock.calls)).toMatch(line));
  expect(stdout).not.toHaveBeenCalled();
});

test('a gateway handles no events of the process, and close ends what plugins have open, twice without harm', async () => {
  const before = listeners();
  const onDispose = vi.fn<() => void>();
  const { gateway, ask } = await open({ config: { plugins: [false, { onDispose }, undefined] } });
  await ask(ALL);
  expect(listeners()).toEqual(before);
  expect(onDispose).not.toHaveBeenCalled();
  await Promise.all([gateway.close(), gateway.close()]);
  expect(onDispose).toHaveBeenCalledOnce();
  expect(await ask(ALL)).toMatchObject(withCode(expect.any(String)));
});

test.each([
  ['a gateway', createGateway],
  ['an executor', createExecutor],
])('close of %s waits until a pair that is under way is saved', async (_, create) => {
  const exchange = service.tokenAnswers.hold('after');
  const opened = await create({ settings: { ...settings, ALLOW_ANONYMOUS: true } });
  await exchange.arrived;
  const closed = opened.close();
  exchange.release();
  await closed;
  const { state } = await openSqliteStore(folder.file('tokens.db'), createSealer([])).read();
  expect(state).toMatchObject({ generation: 2, claim: null });
});

test('the executor of a gateway answers the program without a credential, in parts, drains, and with the codes of callers', async () => {
  service.persons.insert(0, 600);
  const { execute } = await open();
  const { data } = (await execute(ALL)) as { data: { allPersons: unknown[] } };
  expect(data.allPersons).toHaveLength(603);
  const last = 'query ($n: Int) { personsConnection(last: $n) { pageInfo { hasNextPage } } }';
  expect(await execute(last, { n: 2 })).toEqual({
    data: { personsConnection: { pageInfo: { hasNextPage: false } } },
  });
  expect(await execute('{ personsConnection(first: -1) { nodes { id } } }')).toMatchObject(
    failing({ path: ['personsConnection'], extensions: { code: 'BAD_USER_INPUT' } }),
  );
  expect(await execute('{ nobody nowhere }')).toMatchObject({
    errors: ['"nobody"', '"nowhere"'].map((field) => ({ message: expect.stringContaining(field) })),
  });
  expect(await execute('{ allPersons(limit: 1) @stream { __typename } }')).toEqual({
    data: { allPersons: [{ __typename: 'Person' }] },
  });
});

test('the executor of a gateway has the budget of one caller, and takes nothing from that of others', async () => {
  const { execute, ask } = await open({ settings: { PAGES_PER_MINUTE: 2 } });
  await vi.waitFor(async () => {
    expect(await execute(ALL)).toMatchObject({
      errors: [{ extensions: { code: 'RATE_LIMITED', retryAfter: expect.any(Number) } }],
    });
  });
  expect(await ask(ALL)).toEqual({ data: { allPersons: ids } });
});

test("another Yoga serves the service's own schema through createExecutor, whose tokens stay in the store", async () => {
  for (const TOKEN_LINK of [settings.TOKEN_LINK, undefined]) {
    const { executor, close } = await createExecutor({ settings: { ...settings, TOKEN_LINK } });
    const schema = wrapSchema({ schema: await schemaFromExecutor(executor), executor });
    const yoga = createYoga({ schema, logging: false });
    const query = '{ people: persons(first: 2) { items { id } } }';
    const sent = post({ query }, { authorization: 'Bearer of-the-caller' });
    const answer = await yoga.fetch('http://localhost/graphql', sent);
    expect(await answer.json()).toEqual({ data: { people: { items: ids.slice(0, 2) } } });
    expect(service.received.at(-1)!.headers.authorization).not.toContain('of-the-caller');
    await close();
  }
});

test('a failure of createExecutor is a result with a code, and so are requests after the end', async () => {
  const { executor, close } = await createExecutor({ settings });
  const document = parse(PAGE);
  await executor({ document });
  service.revoke();
  expect(await executor({ document })).toMatchObject(withCode('UPSTREAM_UNREACHABLE'));
  await Promise.all([close(), close()]);
  expect(await executor({ document })).toMatchObject(withCode(expect.any(String)));
});

test('examples/plugin: responses say how long they took, and an answer is kept for the next caller', async () => {
  const { send, ask } = await open({ config: plugin });
  const first = await send(PAGE);
  expect(first.headers.get('server-timing')).toMatch(/^gateway;dur=\d+\.\d$/);
  const { length } = service.received;
  expect(await ask(PAGE)).toEqual(await first.json());
  expect(service.received).toHaveLength(length);
});

test('examples/own-field: the greeting of each person, for callers and for the program', async () => {
  const { gateway, ask, execute } = await open({ config: ownField });
  const greetings = service.persons.all().map(({ firstName }) => ({
    greeting: firstName === null ? 'Good day,' : `Dear ${firstName},`,
  }));
  for (const answer of [ask, execute])
    expect(await answer('{ allPersons { greeting } }')).toEqual({
      data: { allPersons: greetings },
    });
  expect(printSchema(gateway.schema)).toContain('greeting: String!');
});

test('examples/second-service: reviews of all persons of an answer, with one request and its own credential, and null while it is down', async () => {
  const credentials: unknown[] = [];
  let isDown = false;
  const url = await startServer((request, response) => {
    if (isDown) return void response.writeHead(503).end();
    credentials.push(request.headers.authorization);
    void reviews(request, response);
  });
  vi.stubEnv('REVIEWS_URL', `${url}/graphql`);
  vi.stubEnv('REVIEWS_TOKEN', 'secret');
  const { default: config } = await import('../../examples/second-service/gateway.config.ts');
  const { ask } = await open({ config });
  const nodes = ids.slice(-2).map(({ id }) => ({ id, reviews: [{ stars: 5 }, { stars: 4 }] }));
  const query = '{ personsConnection(last: 2) { nodes { id reviews { stars } } } }';
  expect(await ask(query)).toEqual({ data: { personsConnection: { nodes } } });
  expect(credentials).toEqual(['Bearer secret']);
  isDown = true;
  const without = nodes.map(({ id }) => ({ id, reviews: null }));
  expect(await ask(query)).toMatchObject({ data: { personsConnection: { nodes: without } } });
});

/** The program around a gateway. */
const PROGRAMS: Record<string, (gateway: Gateway) => RequestListener> = {
  'node:http': ({ handler }) => handler,
  'a route of Express': ({ handler }) => express().all('/graphql', handler),
  Hono: ({ fetch: answer }) =>
    getRequestListener(new Hono().all('/graphql', ({ req }) => answer(req.raw)).fetch),
};
/** Hono replaces them in the whole process, which runs other files too. */
const { Request, Response } = globalThis;
afterAll(() => void Object.assign(globalThis, { Request, Response }));

/** Without plugins, requests do not go through Yoga. */
const CONFIGS: Record<string, GatewayConfig> = {
  'without plugins': {},
  'with a plugin': { plugins: [{ onExecute: () => {} }] },
};

/** Opens a gateway for anybody. */
const openForAll = async (config: GatewayConfig) => {
  const anybody = { AUTH_API_KEYS: undefined, ALLOW_ANONYMOUS: true };
  return (await open({ settings: anybody, config })).gateway;
};
/** Serves a gateway by a program. @returns the address of GraphQL in it */
const serve = async (listener: RequestListener) => `${await startServer(listener)}/graphql`;

test.each(
  Object.entries(CONFIGS).flatMap(([how, config]) =>
    Object.entries(PROGRAMS).map(([where, program]) => [how, where, config, program] as const),
  ),
)(
  'a gateway %s in %s answers operations, serves GraphiQL, streams in parts unless there are plugins, and ends the upstream request of a caller who leaves',
  async (_how, _where, config, program) => {
    service.persons.insert(0, 57);
    const url = await serve(program(await openForAll(config)));
    // Several operations on one connection.
    for (const last of [10, 20]) {
      const { data } = await askAt(url, `{ personsConnection(last: ${last}) { nodes { id } } }`);
      expect(data).toMatchObject({ personsConnection: { nodes: { length: last } } });
    }
    const page = await fetch(url, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-type')).toContain('text/html');
    // Several megabytes.
    await page.body!.cancel();

    const stream = post({ query: '{ allPersons @stream { id } }' }, { accept: IN_PARTS });
    const streamed = await fetch(url, stream);
    const text = await streamed.text();
    expect(text.match(/"id":/g)).toHaveLength(60);
    expect(text.split('Content-Type:').length > 2).toBe(!config.plugins);

    const outcome = await leave((signal) => fetch(url, { ...post({ query: ALL }), signal }));
    expect(outcome).toMatchObject({ name: 'AbortError' });
  },
);

test('its executor ends the upstream request of a program that leaves', async () => {
  const { executor } = await openForAll({});
  const outcome = await leave(async (signal) => executor({ document: parse(ALL), signal }));
  expect(outcome).toMatchObject({ errors: [expect.anything()] });
});

/** Leaves a request while the service has it, and waits until the service is left too. */
async function leave(request: (signal: AbortSignal) => Promise<unknown>): Promise<unknown> {
  const arrived = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  service.answer((response) => {
    response.once('close', left.resolve);
    arrived.resolve();
  });
  const leaving = new AbortController();
  const outcome = request(leaving.signal).catch((error: unknown) => error);
  await arrived.promise;
  leaving.abort();
  await left.promise;
  return outcome;
}

test.each(Object.entries(CONFIGS))(
  'a gateway %s refuses a body that something else has read, and says what to do',
  async (_, config) => {
    const { handler } = await openForAll(config);
    const url = await serve(express().use(express.json()).all('/graphql', handler));
    const answer = await fetch(url, post({ query: ALL }));
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject(
      failing({ message: expect.stringContaining('before body parsers') }),
    );
  },
);
