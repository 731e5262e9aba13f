/** What a program gets that uses the gateway, or only its executor, in its own process. */
import { createHash } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { isAsyncIterable, type ExecutionResult } from '@graphql-tools/utils';
import { schemaFromExecutor, wrapSchema } from '@graphql-tools/wrap';
import { parse, printSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import ownField from '../../examples/own-field/gateway.config.ts';
import plugin from '../../examples/plugin/gateway.config.ts';
import { yoga as reviews } from '../../examples/second-service/reviews.ts';
import {
  createExecutor,
  createGateway,
  type Gateway,
  type ServiceExecutor,
  type Settings,
} from '../../src/library/index.ts';
import { startService, type Service } from '../service/service.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startServer } from '../support/test-server.ts';

let sandbox: Service;
let folder: ReturnType<typeof temporaryFolder>;
let settings: Settings;
beforeEach(async () => {
  sandbox = await startService({ persons: 3 });
  folder = temporaryFolder('disk');
  settings = {
    RECRUITING_URL: sandbox.url,
    RECRUITING_AGENT: 'example-inc/1.0 (it@example.com)',
    TOKEN_LINK: sandbox.tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    LOG_LEVEL: 'silent',
  };
});
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  await sandbox.close();
  folder[Symbol.dispose]();
});

const KEY = 'rsk_of-the-portal';
const AUTH_API_KEYS = `portal:${createHash('sha256').update(KEY).digest('hex')}:read+drain`;
const ALL = '{ allPersons { id } }';

function ids(): { id: string }[] {
  return sandbox.persons.all().map(({ id }) => ({ id }));
}

type Options = Partial<Parameters<typeof createGateway>[0]>;

interface Opened extends AsyncDisposable {
  readonly gateway: Gateway;
  /** Asks as a caller with a key, through `fetch`. */
  ask(query: string): Promise<unknown>;
  send(query: string): Promise<Response>;
  /** Asks as the program. */
  execute(query: string, variables?: Record<string, unknown>): Promise<unknown>;
}

async function open({ settings: others, ...options }: Options = {}): Promise<Opened> {
  const gateway = await createGateway({
    settings: { ...settings, AUTH_API_KEYS, ...others },
    ...options,
  });
  const send: Opened['send'] = async (query) =>
    gateway.fetch('http://localhost/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': KEY },
      body: JSON.stringify({ query }),
    });
  return {
    gateway,
    send,
    ask: async (query) => (await send(query)).json(),
    execute: async (query, variables) =>
      gateway.executor({ document: parse(query), ...(variables && { variables }) }),
    [Symbol.asyncDispose]: () => gateway.close(),
  };
}

function listeners(): unknown[] {
  return process.eventNames().map((name) => [name, process.listenerCount(name)]);
}

describe('createGateway', () => {
  test.each<[string, Settings, object | undefined, RegExp]>([
    [
      'mistakes in the settings, all at once',
      { AUTH_API_KEYS: undefined, MAX_DRAINS: 0 },
      {},
      /^The configuration has 2 mistakes:\n {2}- [^]*MAX_DRAINS must be a whole number from 1 to 1000/,
    ],
    [
      'a misspelled key in the configuration',
      {},
      { typeDef: '' },
      /^config has mistakes:\n✖ Unrecognized key: "typeDef"/,
    ],
    [
      'a configuration that is only named',
      { GATEWAY_CONFIG: 'gateway.config.ts' },
      undefined,
      /Import the file that it names/,
    ],
    [
      'no RECRUITING_URL, and opens no sandbox instead',
      { RECRUITING_URL: undefined },
      {},
      /RECRUITING_URL is not set|without RECRUITING_URL/,
    ],
  ])('refuses %s, and opens nothing', async (_, wrong, config, mistake) => {
    await expect(open({ settings: wrong, config })).rejects.toThrow(mistake);
    expect(existsSync(folder.file('tokens.db'))).toBe(false);
  });

  test('does not read the environment: a program passes it as the settings if it wants that', async () => {
    vi.stubEnv('RECRUITING_URL', sandbox.url);
    vi.stubEnv('ALLOW_ANONYMOUS', 'true');
    vi.stubEnv('LOG_LEVEL', 'silent');
    await expect(createGateway({ settings: {} })).rejects.toThrow('RECRUITING_URL is not set');
    vi.stubEnv('TOKEN_STORE', settings.TOKEN_STORE as string);
    const gateway = await createGateway({ settings: process.env });
    await gateway.close();
    expect(existsSync(folder.file('tokens.db'))).toBe(true);
  });

  test('leaves nothing open when it fails: the store can be opened again, with other settings', async () => {
    writeFileSync(folder.file('other.graphql'), 'type Query { a: Strin }');
    const wrong = { RECRUITING_SCHEMA: folder.file('other.graphql') };
    await expect(open({ settings: wrong })).rejects.toThrow('other.graphql');
    // Settings are values or texts; undefined and blank ones are not set.
    const others = { MAX_DEPTH: 2, MAX_TOKENS: undefined, MAX_ALIASES: ' ' };
    await using opened = await open({ settings: others });
    expect(await opened.ask(ALL)).toEqual({ data: { allPersons: ids() } });
    expect(await opened.ask('{ persons { items { id } } }')).toMatchObject({
      errors: [{ extensions: { code: 'OPERATION_TOO_COMPLEX' } }],
    });
  });

  test('opens while its database is down, and answers with a code until it is up', async () => {
    const TOKEN_STORE = 'postgres://me:secret@127.0.0.1:9/tokens';
    await using opened = await open({ settings: { TOKEN_STORE, TOKEN_RESCUE_DIR: folder.path } });
    expect(await opened.ask(ALL)).toMatchObject({
      errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }],
    });
  });

  test('logs to the log that it is given; without one, warnings and errors go to the standard error', async () => {
    const loud = { RECRUITING_AGENT: 'example-inc/1.0', LOG_LEVEL: undefined };
    const { log, logged } = recordingLog();
    {
      await using _opened = await open({ settings: loud, log });
    }
    const warning = 'RECRUITING_AGENT has no contact';
    expect(logged.map(({ msg }) => msg)).toContainEqual(expect.stringContaining(warning));

    const written = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      vi.spyOn(process[name], 'write').mockImplementation((text) => {
        written[name] += String(text);
        return true;
      });
    }
    const opened = await open({ settings: loud });
    await opened.ask(ALL);
    await opened.gateway.close();
    const line = new RegExp(`^\\[[^\\]]*\\] WARN: ${warning}[^\\n]*\\n$`);
    await vi.waitFor(() => expect(written.stderr).toMatch(line));
    expect(written.stdout).toBe('');
  });

  test('handles no events of the process, and close ends what plugins have open, twice without harm', async () => {
    const before = listeners();
    const disposed: string[] = [];
    const disposable = { onDispose: async () => void disposed.push('plugin') };
    await using opened = await open({ config: { plugins: [disposable] } });
    await opened.ask(ALL);
    expect(listeners()).toEqual(before);
    expect(disposed).toEqual([]);
    await Promise.all([opened.gateway.close(), opened.gateway.close()]);
    expect(disposed).toEqual(['plugin']);
    const refused = { errors: [{ extensions: { code: expect.any(String) } }] };
    expect(await opened.ask(ALL)).toMatchObject(refused);
  });
});

describe('the executor of a gateway', () => {
  test.each<[string, string, variables: Record<string, unknown>, answer: object]>([
    [
      'what is served, without a credential',
      'query ($n: Int) { personsConnection(last: $n) { pageInfo { hasNextPage } } }',
      { n: 2 },
      { data: { personsConnection: { pageInfo: { hasNextPage: false } } } },
    ],
    [
      'a failing field with its code',
      '{ personsConnection(first: -1) { nodes { id } } }',
      {},
      { errors: [{ path: ['personsConnection'], extensions: { code: 'BAD_USER_INPUT' } }] },
    ],
    [
      'an unknown field with an error',
      '{ nobody }',
      {},
      { errors: [{ message: expect.stringContaining('"nobody"') }] },
    ],
    [
      'variables that are too deep with an error',
      'query ($of: [_Any!]!) { _entities(representations: $of) { __typename } }',
      {
        of: [
          Array(30_000)
            .fill(0)
            .reduce<object>((deep) => ({ deep }), {}),
        ],
      },
      { errors: [{ extensions: { code: 'OPERATION_TOO_COMPLEX' } }] },
    ],
  ])('answers %s', async (_, query, variables, answer) => {
    await using opened = await open();
    expect(await opened.execute(query, variables)).toMatchObject(answer);
  });

  test('answers an operation with @stream in parts', async () => {
    await using opened = await open();
    const parts = await opened.execute('{ allPersons @stream(initialCount: 1) { id } }');
    if (!isAsyncIterable(parts)) throw new Error('It was executed whole.');
    const results: ExecutionResult[] = [];
    for await (const result of parts) results.push(result as ExecutionResult);
    expect(results.length).toBeGreaterThan(1);
    expect(JSON.stringify(results).match(/"id"/g)).toHaveLength(3);
  });

  test('drains as many records as there are', async () => {
    sandbox.persons.insert(0, 600);
    await using opened = await open();
    const { data } = (await opened.execute(ALL)) as { data: { allPersons: unknown[] } };
    expect(data.allPersons).toHaveLength(603);
  });

  test('has the budget of one caller, and takes nothing from that of others', async () => {
    await using opened = await open({ settings: { PAGES_PER_MINUTE: 2 } });
    await vi.waitFor(async () => {
      expect(await opened.execute(ALL)).toMatchObject({
        errors: [{ extensions: { code: 'RATE_LIMITED', retryAfter: expect.any(Number) } }],
      });
    });
    expect(await opened.ask(ALL)).toEqual({ data: { allPersons: ids() } });
  });
});

async function openExecutor(others: Settings = {}): Promise<AsyncDisposable & ServiceExecutor> {
  const opened = await createExecutor({ settings: { ...settings, ...others } });
  return { ...opened, [Symbol.asyncDispose]: () => opened.close() };
}

describe('createExecutor', () => {
  const PEOPLE = parse('query People($first: Int) { persons(first: $first) { items { id } } }');

  test("another Yoga serves the service's own schema through it", async () => {
    await using opened = await openExecutor();
    const { executor } = opened;
    const schema = wrapSchema({ schema: await schemaFromExecutor(executor), executor });
    const yoga = createYoga({ schema, logging: false });
    const answer = await yoga.fetch('http://localhost/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer of-the-caller' },
      body: JSON.stringify({ query: '{ people: persons(first: 2) { items { id } } }' }),
    });
    expect(await answer.json()).toEqual({ data: { people: { items: ids().slice(0, 2) } } });
    expect(sandbox.received.at(-1)!.headers.authorization).not.toContain('of-the-caller');
  });

  test('the tokens stay in the store: the next program needs no link', async () => {
    for (const TOKEN_LINK of [settings.TOKEN_LINK, undefined]) {
      await using opened = await openExecutor({ TOKEN_LINK });
      expect(await opened.executor({ document: PEOPLE, variables: { first: 1 } })).toEqual({
        data: { persons: { items: ids().slice(0, 1) } },
      });
    }
  });

  test('a failure is a result with a code, and so are requests after the end', async () => {
    await using opened = await openExecutor();
    await opened.executor({ document: PEOPLE });
    sandbox.revoke();
    expect(await opened.executor({ document: PEOPLE })).toMatchObject({
      errors: [{ extensions: { code: 'UPSTREAM_UNREACHABLE' } }],
    });
    await Promise.all([opened.close(), opened.close()]);
    expect(await opened.executor({ document: PEOPLE })).toMatchObject({
      errors: [{ extensions: { code: expect.any(String) } }],
    });
  });
});

describe('examples', () => {
  test('plugin: responses say how long they took, and an answer is kept for the next caller', async () => {
    await using opened = await open({ config: plugin });
    const first = await opened.send('{ persons { items { id } } }');
    expect(first.headers.get('server-timing')).toMatch(/^gateway;dur=\d+\.\d$/);
    const { graphql } = sandbox.stats;
    expect(await opened.ask('{ persons { items { id } } }')).toEqual(await first.json());
    expect(sandbox.stats.graphql).toBe(graphql);
  });

  test('own-field: the greeting of each person, for callers and for the program', async () => {
    await using opened = await open({ config: ownField });
    const greetings = sandbox.persons.all().map(({ firstName }) => ({
      greeting: firstName === null ? 'Good day,' : `Dear ${firstName},`,
    }));
    const answer = { data: { allPersons: greetings } };
    expect(await opened.ask('{ allPersons { greeting } }')).toEqual(answer);
    expect(await opened.execute('{ allPersons { greeting } }')).toEqual(answer);
    expect(printSchema(opened.gateway.schema)).toContain('greeting: String!');
  });

  test('second-service: reviews of all persons of an answer, with one request and its own credential', async () => {
    const credentials: unknown[] = [];
    const url = await startServer((request, response) => {
      credentials.push(request.headers.authorization);
      void reviews(request, response);
    });
    vi.stubEnv('REVIEWS_URL', `${url}/graphql`);
    vi.stubEnv('REVIEWS_TOKEN', 'secret');
    const { default: config } = await import('../../examples/second-service/gateway.config.ts');
    await using opened = await open({ config });
    const query = '{ personsConnection(last: 2) { nodes { id reviews { stars } } } }';
    const nodes = ids()
      .slice(-2)
      .map(({ id }) => ({ id, reviews: [{ stars: 5 }, { stars: 4 }] }));
    expect(await opened.ask(query)).toEqual({ data: { personsConnection: { nodes } } });
    expect(credentials).toEqual(['Bearer secret']);
  });
});
