import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createGateway, type Gateway, type Settings } from '../../src/library/index.ts';
import { startService, type Service } from '../service/service.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

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
    ALLOW_ANONYMOUS: true,
  };
});
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  await sandbox.close();
  folder[Symbol.dispose]();
});

test('a gateway made by a program answers through its fetch, and by its handler on a socket', async () => {
  await using opened = await open();
  const { gateway } = opened;
  const query = '{ allPersons { id } }';
  const people = { data: { allPersons: sandbox.persons.all().map(({ id }) => ({ id })) } };
  expect(await (await gateway.fetch(...post('http://localhost/graphql', query))).json()).toEqual(
    people,
  );
  const server = createServer(gateway.handler).listen(0, '127.0.0.1');
  await vi.waitFor(() => expect(server.listening).toBe(true));
  const { port } = server.address() as AddressInfo;
  const answer = await fetch(...post(`http://127.0.0.1:${port}/graphql`, query));
  expect(await answer.json()).toEqual(people);
  expect((await fetch(`http://127.0.0.1:${port}/ready`)).status).toBe(200);
  server.closeAllConnections();
  server.close();
});

test('settings are values or texts, and undefined or blank ones are not set', async () => {
  await using opened = await open({ MAX_DEPTH: 1, MAX_TOKENS: undefined, MAX_ALIASES: ' ' });
  const answer = await opened.gateway.fetch(
    ...post('http://localhost/graphql', '{ persons { items { id } } }'),
  );
  expect(await answer.json()).toMatchObject({
    errors: [{ extensions: { code: 'OPERATION_TOO_COMPLEX' } }],
  });
});

test('all mistakes in the settings are reported at once, and nothing is opened', async () => {
  const wrong = { ...settings, ALLOW_ANONYMOUS: undefined, MAX_DRAINS: 0 };
  const failure = await createGateway({ settings: wrong }).catch((error: unknown) => error);
  expect((failure as Error).message).toMatch(/^The configuration has 2 mistakes:\n {2}- /);
  expect((failure as Error).message).toContain('MAX_DRAINS must be a whole number from 1 to 1000');
  expect((failure as Error).message).toContain('Set AUTH_API_KEYS');
  expect(existsSync(folder.file('tokens.db'))).toBe(false);
});

test('mistakes in the configuration are reported, and a configuration that is only named must be imported', async () => {
  const config = { plugins: [], typeDef: 'extend type Person { a: Int }' };
  await expect(createGateway({ settings, config })).rejects.toThrow(
    'config has mistakes:\n✖ Unrecognized key: "typeDef"',
  );
  const named = { ...settings, GATEWAY_CONFIG: 'gateway.config.ts' };
  await expect(createGateway({ settings: named })).rejects.toThrow('Import the file that it names');
  const gateway = await createGateway({ settings: named, config: {} });
  await gateway.close();
});

test('without RECRUITING_URL there is no gateway, and no sandbox instead of it', async () => {
  const failure = createGateway({ settings: { TOKEN_LINK: sandbox.tokenLink } });
  await expect(failure).rejects.toThrow('RECRUITING_URL is not set. Set it to the base address');
});

test('the environment is not read: a program passes it as the settings if it wants that', async () => {
  vi.stubEnv('RECRUITING_URL', sandbox.url);
  vi.stubEnv('ALLOW_ANONYMOUS', 'true');
  vi.stubEnv('LOG_LEVEL', 'silent');
  await expect(createGateway({ settings: {} })).rejects.toThrow('RECRUITING_URL is not set');
  vi.stubEnv('TOKEN_STORE', settings.TOKEN_STORE as string);
  const gateway = await createGateway({ settings: process.env });
  await gateway.close();
  expect(existsSync(folder.file('tokens.db'))).toBe(true);
});

test('a failure to open leaves nothing open: the store can be opened by another process', async () => {
  writeFileSync(folder.file('other.graphql'), 'type Query { a: Strin }');
  const wrong = { ...settings, RECRUITING_SCHEMA: folder.file('other.graphql') };
  await expect(createGateway({ settings: wrong })).rejects.toThrow('other.graphql');
  await using opened = await open();
  await vi.waitFor(async () => {
    expect((await opened.gateway.fetch('http://localhost/ready')).status).toBe(200);
  });
});

test('a gateway logs to the log that it is given', async () => {
  const { log, logged } = recordingLog();
  await using _opened = await open({ RECRUITING_AGENT: 'example-inc/1.0' }, log);
  expect(logged.map(({ msg }) => msg)).toContainEqual(
    expect.stringContaining('RECRUITING_AGENT has no contact'),
  );
});

test('without a log, only warnings and errors are written, and to the standard error', async () => {
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    });
  }
  await using _opened = await open({ RECRUITING_AGENT: 'example-inc/1.0' });
  const warning = /^\[[^\]]*\] WARN: RECRUITING_AGENT has no contact[^\n]*\n$/;
  await vi.waitFor(() => expect(written.stderr).toMatch(warning));
  expect(written.stdout).toBe('');
});

test('a gateway handles neither signals nor other events of the process around it', async () => {
  const before = listenersOfProcess();
  await using opened = await open();
  await opened.gateway.fetch(...post('http://localhost/graphql', '{ allPersons { id } }'));
  expect(listenersOfProcess()).toEqual(before);
});

test('close ends what plugins have open', async () => {
  const disposed: string[] = [];
  const plugin = { onDispose: async () => void disposed.push('plugin') };
  const gateway = await createGateway({ settings, config: { plugins: [plugin] } });
  expect(disposed).toEqual([]);
  await gateway.close();
  expect(disposed).toEqual(['plugin']);
});

test('close can be called twice, and a request that comes afterwards is refused', async () => {
  const gateway = await createGateway({ settings });
  await Promise.all([gateway.close(), gateway.close()]);
  const answer = await gateway.fetch(...post('http://localhost/graphql', '{ allPersons { id } }'));
  expect(await answer.json()).toMatchObject({
    errors: [{ extensions: { code: expect.any(String) } }],
  });
});

function listenersOfProcess(): unknown[] {
  return process.eventNames().map((name) => [name, process.listenerCount(name)]);
}

async function open(
  others: Settings = {},
  log?: Parameters<typeof createGateway>[0]['log'],
): Promise<AsyncDisposable & { readonly gateway: Gateway }> {
  const gateway = await createGateway({ settings: { ...settings, ...others }, log });
  return { gateway, [Symbol.asyncDispose]: () => gateway.close() };
}

function post(url: string, query: string): [string, RequestInit] {
  const headers = { 'content-type': 'application/json' };
  return [url, { method: 'POST', headers, body: JSON.stringify({ query }) }];
}
