/** Gateways that go away, disks that are full, files that are there already, and the next night. */
import { spawn } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GatewayFailure } from '../../src/export/gateway.ts';
import { Patience } from '../../src/export/pages.ts';
import { blockWith } from '../support/docs/documents.ts';
import { runInShell } from '../support/docs/shell.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { listeningGateway, type ListeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere, startHere } from '../support/gateway/run-here.ts';
import { bundled } from '../support/processes/bundled.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startServer } from '../support/test-server.ts';
import { canFillDisk } from '../support/tokens/fault-disk.ts';

const MAIN = await bundled('src/process.ts');
const PERSONS = 600;
const folder = temporaryFolder();
let gateway: GatewayOverService;
let door: ListeningGateway;
let whole: string;
beforeAll(async () => {
  gateway = await startGatewayOverService({ persons: PERSONS });
  door = await listeningGateway(gateway);
  whole = gateway.service.persons
    .all()
    .map(({ id, firstName }) => `${JSON.stringify({ id, firstName })}\n`)
    .join('');
});
afterEach(() => {
  door.onRequest = () => {};
});
afterAll(async () => {
  await door[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

let files = 0;
const newFile = (ending = 'ndjson') => folder.file(`${(files += 1)}.${ending}`);
const run = (...args: string[]) => runHere(['export', 'persons', ...args, '--url', door.url]);
const nightly = (file: string, ...args: string[]) =>
  run('--output', file, ...args, '--resume', '--force');

/** Stops an export behind a window. */
async function interrupted(file: string, ...args: string[]): Promise<void> {
  const stopping = new AbortController();
  // Behind the three that find the list, and the first window.
  door.onRequest = (request) => {
    if (request === 5) stopping.abort();
  };
  const all = ['export', 'persons', '--output', file, ...args, '--url', door.url];
  const { code, stderr } = await runHere(all, {}, [], { stop: stopping.signal });
  expect({ code, isThere: existsSync(file) }).toEqual({ code: 1, isThere: false });
  expect(stderr).toMatch(/stopped\. \d+ records were written to .*\.part\. .* --resume/);
  door.onRequest = () => {};
}

describe('a gateway that fails', () => {
  test('goes away and comes back: the export continues by itself', async () => {
    door.onRequest = (request, response) => {
      if (request === 5) response.socket!.destroy();
    };
    const { code, stdout, stderr } = await run();
    expect({ code, isWhole: stdout === whole }).toEqual({ code: 0, isWhole: true });
    expect(stderr).toMatch(/did not answer \(\w+\)\..* Trying again in 1 s\.\n[^]*600 records/);
  });

  test('is down behind a proxy that answers 503: the export waits', async () => {
    let requests = 0;
    const url = await startServer((request, response) => {
      requests += 1;
      if (requests > 1) gateway.gateway.handler(request, response);
      else response.writeHead(503, { 'content-type': 'text/html' }).end('<h1>Down</h1>');
    });
    const { code, stderr } = await runHere(['export', 'persons', '--url', url]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^.*\(HTTP 503\).* Trying again in 1 s\.\nExporting [^]*600 records/);
  });

  test('is away when the export begins: stopping the export ends its wait', async () => {
    const url = await startServer((_request, response) => response.writeHead(503).end());
    await using command = startHere(['export', 'persons', '--url', url]);
    await command.printed(/Trying again in 8 s/);
    expect(await command.stop()).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/ 8 s\.\nThe export was stopped\.\n$/),
    });
  });

  test('never answers: the export gives up after 5 minutes', async () => {
    let elapsed = 0;
    const clock = {
      now: () => elapsed,
      elapsed: () => elapsed,
      sleep: async (ms: number) => void (elapsed += ms),
    };
    const waits: number[] = [];
    const { signal } = new AbortController();
    const patience = new Patience(clock, signal, (_failure, seconds) => void waits.push(seconds));
    const away = new GatewayFailure('It is away.', { isTemporary: true });
    const givingUp = async () => {
      for (;;) await patience.wait(away);
    };
    await expect(givingUp()).rejects.toBe(away);
    expect(waits.slice(0, 7)).toEqual([1, 2, 4, 8, 16, 30, 30]);
    expect(elapsed).toBeGreaterThan(4 * 60_000);
    expect(elapsed).toBeLessThanOrEqual(5 * 60_000);
  });

  test('accepts smaller windows only, and has fields of its own: the list is read in smaller windows', async () => {
    const greeting = {
      typeDefs: 'extend type Person { greeting: String }',
      resolvers: { Person: { greeting: () => 'hello' } },
    };
    await using small = await startGatewayOverService(
      { persons: PERSONS },
      { additions: greeting, config: { connectionMax: 100 } },
    );
    await using smallDoor = await listeningGateway(small);
    const args = ['export', 'persons', '--fields', 'id greeting', '--url', smallDoor.url];
    expect(await runHere(args)).toMatchObject({
      code: 0,
      stdout: small.service.persons
        .all()
        .map(({ id }) => `{"id":"${id}","greeting":"hello"}\n`)
        .join(''),
    });
  });
});

test.skipIf(!canFillDisk)(
  'a full disk ends an export with what to do, and --resume continues it',
  async () => {
    const file = newFile();
    const args = ['export', 'persons', '--output', file, '--url', door.url];
    // No file can grow beyond this.
    const ended = await exitOf('prlimit', ['--fsize=40000', process.execPath, MAIN, ...args]);
    expect(ended).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /because the disk is full\. Free some space, and run the same command with --resume/,
      ),
    });
    expect(existsSync(file)).toBe(false);
    expect((await runHere([...args, '--resume'])).code).toBe(0);
    expect(readFileSync(file, 'utf8') === whole).toBe(true);
  },
);

test('an export ends quietly when nobody reads its output any more', async () => {
  const command = '"$0" "$1" export persons --url "$2" | head -n 2; echo "${PIPESTATUS[0]}"';
  // More than a pipe holds.
  await using long = await startGatewayOverService({ persons: 5_000 });
  await using longDoor = await listeningGateway(long);
  const args = ['-c', command, process.execPath, MAIN, longDoor.url];
  const { stdout, stderr } = await exitOf('bash', args);
  expect(stdout.trimEnd().split('\n')).toEqual([expect.any(String), expect.any(String), '1']);
  expect(stderr).toMatch(/^Exporting .*\n$/);
});

describe('files', () => {
  test('a file is replaced only with --force, and --resume finds it whole', async () => {
    const file = newFile();
    writeFileSync(file, 'precious\n', { mode: 0o644 });
    expect(await run('--output', file)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--force'),
    });
    expect(await run('--output', file, '--resume')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('whole already'),
    });
    expect(readFileSync(file, 'utf8')).toBe('precious\n');
    const link = newFile();
    symlinkSync(file, link);
    expect((await run('--output', link, '--force')).code).toBe(0);
    expect(readFileSync(file, 'utf8') === whole).toBe(true);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

describe('--resume --force, for every night', () => {
  test('begins anew if the last export is whole, and continues what was cut off', async () => {
    const file = newFile();
    await interrupted(file, '--limit', '580');
    expect(await run('--output', file, '--limit', '580')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/was interrupted\. Continue it with --resume/),
    });
    expect((await nightly(file, '--fields', 'nobody')).code).toBe(2);
    // As if the service could not give a value of the first part.
    const state = `${file}.part.state`;
    writeFileSync(state, readFileSync(state, 'utf8').replace('"faults":0', '"faults":1'));
    expect(await nightly(file, '--limit', '580')).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(
        /^Continuing .*: \d+ records were written before\.\n[^]*580 records in [^]* null: 1\n$/,
      ),
    });
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(581);
    expect((await nightly(file)).code).toBe(0);
    expect(readFileSync(file, 'utf8') === whole).toBe(true);
  });

  test.each<[string, string[], (file: string) => void, RegExp]>([
    ['with other fields', ['--fields', 'id firstName'], () => {}, /begun .* with other options/],
    ['as CSV', ['--format', 'csv'], () => {}, /begun .* with other options/],
    ['after the file was cut', [], (file) => truncateSync(`${file}.part`, 3), /is shorter/],
  ])('begins anew if what was cut off cannot be continued: %s', async (_, args, damage, why) => {
    const file = newFile('data');
    await interrupted(file, '--fields', 'firstName id');
    damage(file);
    const selected = args.includes('--fields') ? args : ['--fields', 'firstName id', ...args];
    const refused = await run('--output', file, ...selected, '--resume');
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(why) });
    expect(refused.stderr).toMatch(/begin anew with --force/i);
    const { code, stderr } = await nightly(file, ...selected);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(why) });
    expect(stderr).toMatch(/This export begins anew\.\nExporting/);
    expect(readFileSync(file, 'utf8').match(/\n/g)).toHaveLength(
      args.includes('csv') ? PERSONS + 1 : PERSONS,
    );
  });

  test('begins anew if the state of what was cut off is damaged', async () => {
    const file = newFile();
    await interrupted(file);
    writeFileSync(`${file}.part.state`, 'not a state\n'.repeat(100));
    expect(await run('--output', file, '--resume')).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/is damaged.* begins anew\.\nExporting/),
    });
    expect(readFileSync(file, 'utf8') === whole).toBe(true);
  });

  test('the line for cron in docs/export.md exports', async () => {
    const block = blockWith('docs/export.md', '17 2 * * *');
    const [, command] = /^17 2 \* \* \* \w+ (.*)$/m.exec(block) as unknown as [string, string];
    const file = newFile();
    const here = command
      .replace(/https:\S+/, door.url)
      .replaceAll('/srv/exports/persons.ndjson', file)
      .replaceAll('/srv/exports', folder.path);
    expect(await runInShell(here, folder.path, MAIN)).toBe('');
    expect(readFileSync(file, 'utf8') === whole).toBe(true);
  });
});

test('the recipe of the README runs as it stands', async () => {
  const block = blockWith('README.md', 'persons.csv');
  const { host } = new URL(door.url);
  const recipe = block.replaceAll('localhost:4000', host);
  expect(await runInShell(recipe, folder.path, MAIN)).toContain('600 records');
  const rows = readFileSync(join(folder.path, 'persons.csv'), 'utf8').trimEnd().split('\n');
  const ids = gateway.service.persons.all().map(({ id }) => id);
  expect(rows.slice(1).map((row) => row.split(',')[0])).toEqual(ids);
});

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
