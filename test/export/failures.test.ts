import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { exportedPages, type ExportedPage } from '../../src/export/exported-pages.ts';
import { gatewayAt, GatewayFailure } from '../../src/export/gateway.ts';
import { patientGateway } from '../../src/export/patience.ts';
import { parseJson, type Json } from '../../src/export/json.ts';
import { blockWith } from '../support/docs/documents.ts';
import { runInShell } from '../support/docs/shell.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { listeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { canFillDisk } from '../support/tokens/fault-disk.ts';

const MAIN = resolve('src/main.ts');

test('an export continues by itself when its gateway goes away and comes back', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 1_000 });
  await using door = await listeningGateway(gateway);
  door.onPiece = (piece, response) => {
    if (piece === 8) response.socket!.destroy();
  };
  const { code, stdout, stderr } = await runHere(['export', 'persons', '--url', door.url]);
  expect(code).toBe(0);
  expect(stdout.trimEnd().split('\n').map(idOf)).toEqual(
    gateway.sandbox.persons.all().map(({ id }) => id),
  );
  expect(stderr).toMatch(
    /^Exporting .*\nThe answer of the gateway ended in the middle \(\w+\)\. Trying again in 1 s\.\n(?:.* pages .*\n)*1,000 records\. Read \d+ pages in .*\.\n$/,
  );
});

test('an export waits for a gateway behind a proxy that answers 503', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 60 });
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    if (requests > 1) gateway.gateway.handler(request, response);
    else response.writeHead(503, { 'content-type': 'text/html' }).end('<h1>Down</h1>');
  });
  await using url = await listening(server);
  const { code, stderr } = await runHere(['export', 'persons', '--url', String(url)]);
  expect(code).toBe(0);
  expect(stderr).toMatch(/^.*\(HTTP 503\).* Trying again in 1 s\.\nExporting .*\n60 records\./);
});

describe.skipIf(!canFillDisk)('a full disk', () => {
  test('a full disk ends an export with what to do, and --resume continues it', async () => {
    using folder = temporaryFolder();
    await using gateway = await startGatewayOverSandbox({ persons: 5_000 });
    await using door = await listeningGateway(gateway);
    const file = folder.file('persons.ndjson');
    // The file has to grow faster than the log of its state, for which SQLite knows another error than a full disk.
    const fields = ['id', ...Array.from({ length: 20 }, (_, at) => `name${at}: firstName`)];
    const options = ['--fields', fields.join(' '), '--output', file, '--url', door.url];
    const args = ['export', 'persons', ...options];
    // No file can grow beyond this.
    const ended = await exitOf('prlimit', ['--fsize=200000', process.execPath, MAIN, ...args]);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(
      /because the disk is full\. Free some space, and run the same command with --resume/,
    );
    expect(existsSync(file)).toBe(false);
    expect((await runHere([...args, '--resume'])).code).toBe(0);
    expect(readFileSync(file, 'utf8').trimEnd().split('\n').map(idOf)).toEqual(
      gateway.sandbox.persons.all().map(({ id }) => id),
    );
  });
});

test('an export ends quietly when nobody reads its output any more', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 5_000 });
  await using door = await listeningGateway(gateway);
  const command = '"$0" "$1" export persons --url "$2" | head -n 2; echo "${PIPESTATUS[0]}"';
  const { stdout, stderr } = await exitOf('bash', [
    '-c',
    command,
    process.execPath,
    MAIN,
    door.url,
  ]);
  expect(stdout.trimEnd().split('\n')).toEqual([expect.any(String), expect.any(String), '1']);
  expect(stderr).toMatch(/^Exporting .*\n$/);
});

describe('patience', () => {
  test('an export gives up on a gateway that it never reached after 5 minutes', async () => {
    const server = createServer();
    const address = await listening(server);
    await address[Symbol.asyncDispose]();
    const clock = hastyClock();
    const waits: number[] = [];
    const gateway = patientGateway(
      gatewayAt({ url: String(address), apiKey: undefined, proxy: undefined }),
      { clock, onWait: (_failure, seconds) => void waits.push(seconds) },
    );
    await expect(gateway.ask('{ __typename }', new AbortController().signal)).rejects.toThrow(
      /cannot be reached \(ECONNREFUSED\)/,
    );
    expect(waits.slice(0, 7)).toEqual([1, 2, 4, 8, 16, 30, 30]);
    expect(clock.elapsed()).toBeGreaterThan(4 * 60_000);
    expect(clock.elapsed()).toBeLessThanOrEqual(5 * 60_000);
    await gateway.close();
  });

  test('an export gives up on a failing gateway 5 minutes after the last record that it got', async () => {
    const waits: number[] = [];
    let requests = 0;
    const read = pages(waits, async function* () {
      requests += 1;
      if (requests === 10) yield part(['1'], 'behind-1');
      throw down();
    });
    const { records, error } = await runThrough(read);
    expect(records).toEqual(['1']);
    expect(error).toMatchObject({ message: 'down' });
    expect(waits.slice(0, 9)).toEqual([1, 2, 4, 8, 16, 30, 30, 30, 30]);
    // The first wait after the record is a short one again.
    expect(waits.slice(9, 12)).toEqual([1, 2, 4]);
    const sum = waits.slice(9).reduce((total, seconds) => total + seconds, 0);
    expect(sum).toBeGreaterThan(4 * 60);
    expect(sum).toBeLessThanOrEqual(5 * 60);
  });

  test('an export waits as long as the gateway says', async () => {
    const waits: number[] = [];
    let requests = 0;
    const read = pages(waits, async function* () {
      requests += 1;
      if (requests === 1)
        throw new GatewayFailure('slow down', { isTemporary: true, retryAfter: 47 });
      yield part(['1'], 'behind-1');
      yield payload({ hasNext: false });
    });
    expect(await runThrough(read)).toEqual({ records: ['1'], error: undefined });
    expect(waits).toEqual([47]);
  });

  test('an export ends at once on an error that someone must fix first', async () => {
    const waits: number[] = [];
    for (const code of ['FORBIDDEN', 'TOKENS_LOST', 'UPSTREAM_UNAUTHORIZED']) {
      const read = pages(waits, async function* () {
        yield payload({ data: null, errors: [{ message: code, extensions: { code } }] });
      });
      expect((await runThrough(read)).error).toMatchObject({ code });
    }
    expect(waits).toEqual([]);
  });
});

test('a list that costs more pages than one operation may use is read in parts', async () => {
  const queries: string[] = [];
  const read = pages([], async function* (query, after) {
    queries.push(`${/limit: \d+/.exec(query)?.[0]} ${String(after)}`);
    if (!query.includes('limit')) {
      yield payload({
        data: null,
        errors: [{ message: 'too complex', extensions: { code: 'OPERATION_TOO_COMPLEX' } }],
      });
      return;
    }
    const ids = Array.from(
      { length: after === null ? 5_000 : 3 },
      (_, at) => `${String(after)}-${at}`,
    );
    yield part(ids, 'behind-part');
    yield payload({ hasNext: false });
  });
  const { records, error } = await runThrough(read);
  expect(error).toBeUndefined();
  expect(records).toHaveLength(5_003);
  expect(queries).toEqual(['undefined null', 'limit: 5000 null', 'limit: 5000 behind-part']);
});

describe('a list that the gateway does not stream', () => {
  test.each([
    ['answers whole', { data: { records: [{ _exportId: '1' }] } }],
    [
      'refuses',
      {
        data: null,
        errors: [{ message: 'too complex', extensions: { code: 'OPERATION_TOO_COMPLEX' } }],
      },
    ],
  ])('and that it %s is read in windows of its connection', async (_, answer) => {
    const windows: unknown[] = [];
    const read = pages([], async function* (query, after) {
      if (!query.includes('window')) return yield payload(answer);
      windows.push(after);
      yield windowWith(idsBehind(after, 2), windows.length < 3);
    });
    const { records, error } = await runThrough(read);
    expect(error).toBeUndefined();
    expect(windows).toEqual([null, 'behind-null-1', 'behind-behind-null-1-1']);
    expect(records).toHaveLength(6);
  });

  test('is read in pages of the service if windows are too large for the gateway', async () => {
    const queries: string[] = [];
    const read = pages([], async function* (query) {
      queries.push(query);
      if (!query.includes('window')) return yield payload({ data: { records: [] } });
      if (query.includes('500')) {
        const extensions = { code: 'BAD_USER_INPUT' };
        return yield payload({ data: null, errors: [{ message: 'at most 100', extensions }] });
      }
      yield windowWith(['1'], false, [{ message: 'no rating' }]);
    });
    const faults: string[] = [];
    for await (const page of read) faults.push(...page.faults);
    expect(queries).toEqual(['{ }', '{ window: 500 }', '{ window: undefined }']);
    expect(faults).toEqual(['no rating']);
  });
});

test('an export begins the list again if the gateway no longer knows the position of its cursor', async () => {
  const read = pages(
    [],
    async function* (_query, after) {
      if (after === 'old') {
        yield payload({
          data: null,
          errors: [{ message: 'gone', extensions: { code: 'CURSOR_INVALID' } }],
        });
        return;
      }
      yield part(['1', '2'], 'new');
      yield payload({ hasNext: false });
    },
    'old',
  );
  expect(await runThrough(read)).toEqual({ records: ['1', '2'], error: undefined });
});

test('the recipes of the README run as they stand', async () => {
  using folder = temporaryFolder();
  await using gateway = await startGatewayOverSandbox({ persons: 1_050 });
  await using door = await listeningGateway(gateway);
  const block = blockWith('README.md', '# One record a line');
  const { host } = new URL(door.url);
  const [exported, streamed, looped] = block
    .replaceAll('localhost:4000', host)
    .trim()
    .split('\n\n') as [string, string, string];
  const run = (command: string) => runInShell(command, folder.path);
  const ids = gateway.sandbox.persons.all().map(({ id }) => id);

  expect(await run(exported)).toContain('1,050 records');
  const rows = readFileSync(join(folder.path, 'persons.csv'), 'utf8').trimEnd().split('\n');
  expect(rows.slice(1).map((row) => row.split(',')[0])).toEqual(ids);

  const stream = await run(streamed);
  expect([...stream.matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id)).toEqual(ids);

  const pagesOfLoop = await run(looped);
  expect([...pagesOfLoop.matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id)).toEqual(ids);
});

/** @returns its address as text */
async function listening(server: Server) {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    toString: () => `http://localhost:${port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((done) => server.close(done));
      server.closeAllConnections();
      await closed;
    },
  };
}

function idOf(line: string): string {
  return (JSON.parse(line) as { id: string }).id;
}

async function exitOf(command: string, args: readonly string[]) {
  const child = spawn(command, args, {
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.stderr += text));
  const code = await new Promise<number | null>((done, fail) =>
    child.once('error', fail).once('close', done),
  );
  return { code, ...said };
}

function down(): GatewayFailure {
  return new GatewayFailure('down', { isTemporary: true });
}

function payload(value: object): Json {
  return parseJson(JSON.stringify(value)) as Json;
}

function part(ids: readonly string[], resumeAfter: string): Json {
  const items = ids.map((id) => ({ _exportId: id }));
  return payload({
    incremental: [{ items, path: ['records', 0], extensions: { resumeAfter } }],
    hasNext: true,
  });
}

function idsBehind(after: unknown, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${String(after)}-${at}`);
}

function windowWith(ids: readonly string[], hasNextPage: boolean, errors?: object[]): Json {
  const edges = ids.map((id) => ({ cursor: `behind-${id}`, node: { _exportId: id } }));
  return payload({ data: { records: { edges, pageInfo: { hasNextPage } } }, errors });
}

/** Reads from a gateway that answers with these streams. */
function pages(
  waits: number[],
  answer: (query: string, after: unknown) => AsyncGenerator<Json, void, undefined>,
  after?: string,
) {
  return exportedPages({
    gateway: {
      ask: () => Promise.reject(new Error('not asked')),
      stream: ({ query, variables }) => answer(query, (variables as { after: unknown }).after),
      close: async () => {},
    },
    operation: {
      list: 'allPersons',
      keys: ['id'],
      perhapsCut: [],
      text: (limit) => (limit ? `{ limit: ${limit} }` : '{ }'),
      window: (first) => `{ window: ${first} }`,
    },
    after,
    needed: () => Infinity,
    clock: hastyClock(),
    signal: new AbortController().signal,
    onWait: (_failure, seconds) => void waits.push(seconds),
  });
}

/** Reads to the end. */
async function runThrough(read: AsyncGenerator<ExportedPage, void>) {
  const records: (string | null)[] = [];
  try {
    for await (const page of read) records.push(...page.records.map(({ id }) => id));
    return { records, error: undefined };
  } catch (error) {
    return { records, error };
  }
}

/** A clock with which every sleep ends at once, and advances the time. */
function hastyClock(): Clock {
  let elapsed = 0;
  return {
    now: () => elapsed,
    elapsed: () => elapsed,
    sleep: async (ms) => void (elapsed += ms),
  };
}
