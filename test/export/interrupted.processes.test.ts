/** What the next run does with what an export has left, and gateways, disks and readers that fail. */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { cut, json, text } from '../service/replies.ts';
import { blockWith } from '../support/docs/documents.ts';
import { runInShell } from '../support/docs/shell.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { runHere, startHere } from '../support/gateway/run-here.ts';
import { bundled } from '../support/processes/bundled.ts';
import { runProgram } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveHttp, startServer, type Listening } from '../support/listening.ts';
import { canFillDisk } from '../support/tokens/fault-disk.ts';

const MAIN = await bundled('src/process.ts');
let gateway: GatewayOverService;
let door: Listening;
type Fault = (response: ServerResponse) => void;
/** What the door does with some requests, by their number, instead of passing them to the gateway. */
let faults: Readonly<Record<number, Fault>> = {};
let arrived = 0;
/** All persons, as the export writes them, a line each. */
let lines: string[];
let whole: string;
beforeAll(async () => {
  gateway = await startGatewayOverService({ persons: 600 });
  door = await serveHttp((request, response) => {
    const fault = faults[(arrived += 1)];
    if (fault) fault(response);
    else gateway.gateway.handler(request, response);
  });
  lines = gateway.service.persons
    .all()
    .map(({ id, firstName }) => `${JSON.stringify({ id, firstName })}\n`);
  whole = lines.join('');
});
afterAll(async () => {
  await door[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
});

const exportTo = (file: string, ...options: string[]) => [
  'export',
  'persons',
  '--fields',
  'id firstName',
  '--output',
  file,
  '--url',
  door.url,
  ...options,
];

/** Counts the next requests. The first of an export finds its list, and each other one reads a window. */
function failRequest(at: number, fault: Fault): void {
  arrived = 0;
  faults = { [at]: fault };
}

async function stopAt(at: number, file: string, ...options: string[]): Promise<string> {
  const command = startHere(exportTo(file, ...options));
  failRequest(at, () => void command.stop());
  const { code, stderr } = await command.ended;
  const left = at < 3 ? [] : ['persons.part.db'];
  expect({ code, left: readdirSync(dirname(file)) }).toEqual({ code: 1, left });
  return stderr;
}

/** Stops an export behind its first window, and changes what its state says. */
async function interrupt(file: string, change = '', ...options: string[]) {
  const stderr = await stopAt(3, file, ...options);
  expect(stderr).toMatch(/stopped\.\n.*\.part\.db has 500 records\. .* --resume/);
  const state = new DatabaseSync(`${file}.part.db`);
  expect(statSync(`${file}.part.db`).mode & 0o777).toBe(0o600);
  state.exec(change);
  state.close();
}

/** What there can be, and how it came there. */
const LEFT = {
  'a file': async (file) => writeFileSync(file, 'precious\n', { mode: 0o644 }),
  'an export without a record': async (file) => void (await stopAt(2, file)),
  'an export': (file) => interrupt(file),
  'an export that was stopped twice': async (file) => {
    await interrupt(file);
    const command = startHere(exportTo(file, '--resume'));
    failRequest(2, () => void command.stop());
    await command.ended;
  },
  'an export that was begun anew': async (file) => {
    await interrupt(file);
    await interrupt(file, undefined, '--force');
  },
  'an export with a limit': (file) => interrupt(file, undefined, '--limit', '580'),
  'an export beside a file': async (file) => {
    await interrupt(file);
    writeFileSync(file, 'of the last night\n');
  },
  'an export whose database was cut': async (file) => {
    await interrupt(file);
    truncateSync(`${file}.part.db`, 5_000);
  },
  'an export whose database is empty': async (file) => writeFileSync(`${file}.part.db`, ''),
  'a folder': async (file) => mkdirSync(file),
  'an export of another gateway': (file) =>
    interrupt(file, "UPDATE written SET begun = replace(begun, '127.0.0.1', 'elsewhere')"),
  'an export with a value that could not be read': (file) =>
    interrupt(file, 'UPDATE written SET faults = 1'),
  'an export whose last record is gone': (file) =>
    interrupt(file, "UPDATE written SET after = 'of another record'"),
} satisfies Record<string, (file: string) => Promise<void>>;

const CONTINUED = /^Continuing .*, which has 500 records\.\n[^]*600 records in /;
const OTHER_OPTIONS = /was begun .* with other options.* begin anew with --force/;

/** What there is, the options of the next run, its exit code, and what it says. */
type NextRun = [
  left: keyof typeof LEFT,
  options: string,
  code: number,
  says: RegExp,
  /** Default: all persons. With the exit codes 1 and 2, everything stays as it is. */
  gives?: () => string,
];

test.each<NextRun>([
  ['a file', '', 2, /exists already\..*--force/],
  ['a file', '--resume', 2, /exists already\..*--force/],
  ['a file', '--force', 0, /^Exporting/],
  ['an export without a record', '', 0, /^Exporting/],
  ['an export', '', 2, /was interrupted\. Continue it with --resume/],
  ['an export', '--resume', 0, CONTINUED],
  ['an export', '--force', 0, /^Exporting/],
  ['an export', '--fields nobody --force', 2, /nobody/],
  ['an export', '--resume --force', 2, /'--force' cannot be used with option '--resume'/],
  ['an export', '--format csv --resume', 2, OTHER_OPTIONS],
  ['an export', '--fields id --resume', 2, OTHER_OPTIONS],
  ['an export that was stopped twice', '--resume', 0, CONTINUED],
  ['an export that was begun anew', '--resume', 0, CONTINUED],
  ['an export of another gateway', '--resume', 2, OTHER_OPTIONS],
  ['an export with a limit', '--limit 580 --resume', 0, /580 records in/, () => first(580)],
  ['an export beside a file', '--resume', 0, CONTINUED],
  ['an export whose database was cut', '--resume', 2, /\.part\.db cannot be used: .*malformed/],
  ['an export whose database was cut', '--force', 0, /^Exporting/],
  ['an export whose database is empty', '', 0, /^Exporting/],
  ['a folder', '--force', 2, /is a folder\. Give --output the name of a file/],
  ['an export with a value that could not be read', '--resume', 3, / null: 1\n$/],
  ['an export whose last record is gone', '--resume', 0, CONTINUED],
])('after %s, the next run with "%s"', async (left, options, code, says, gives = () => whole) => {
  using folder = temporaryFolder();
  const file = folder.file('persons');
  await LEFT[left](file);
  const files = () =>
    readdirSync(folder.path, { withFileTypes: true }).map((entry) => {
      return [
        entry.name,
        entry.isFile() ? readFileSync(folder.file(entry.name), 'utf8') : 'folder',
      ];
    });
  const before = files();
  const { stderr, ...ended } = await runHere(exportTo(file, ...options.split(' ').filter(Boolean)));
  expect(ended).toEqual({ code, stdout: '' });
  expect(stderr).toMatch(says);
  expect(files()).toEqual([1, 2].includes(code) ? before : [['persons', gives()]]);
  // A new file is for its owner only.
  if (stderr.includes('Exporting')) expect(statSync(file).mode & 0o777).toBe(0o600);
});

const first = (count: number) => lines.slice(0, count).join('');

const page = (status: number, headers = {}) => text('<h1>A page</h1>', status, headers);
const refused = (extensions: object) => json({ errors: [{ message: 'No.', extensions }] });
const MOVED = { location: 'https://elsewhere.example.com/graphql' };

const LIMITED = { code: 'RATE_LIMITED', retryAfter: 7 };
const LASTING = { code: 'DRAIN_INTERRUPTED', reason: 'TOKENS_LOST' };

/** The request that a gateway fails, how, and what becomes of the export. */
test.each<[string, number, Fault, number, RegExp]>([
  [
    'is cut off',
    3,
    cut,
    0,
    /did not answer \([A-Z_]+\)\..* Trying again in 10 s\.\n[^]*600 records/,
  ],
  [
    'is down',
    1,
    page(500),
    0,
    /^.*\(HTTP 500\).* Trying again in 10 s\.\nExporting [^]*600 records/,
  ],
  ['is busy', 2, page(429), 0, /^.*\(HTTP 429\).* Trying again in 10 s\.\n[^]*600 records/m],
  ['asks for a pause', 2, refused(LIMITED), 0, /^No\. Trying again in 7 s\.\n[^]*600 records/m],
  [
    'answers only less',
    2,
    refused({ code: 'OPERATION_TOO_COMPLEX' }),
    0,
    /^(?![^]*again in)[^]*\n600 records/,
  ],
  ['has lost its tokens', 2, refused(LASTING), 1, /^Exporting .*\nNo\.\n$/],
  [
    'finds its cursor outdated',
    2,
    refused({ code: 'CURSOR_INVALID' }),
    1,
    /^Exporting .*\nNo\.\n$/,
  ],
  ['withdraws a scope', 2, refused({ code: 'FORBIDDEN' }), 2, /^Exporting .*\nNo\.\n$/],
  ['redirects', 1, page(307, MOVED), 2, /^\S+ did not .*\(HTTP 307\)\. Check the address in --url/],
  ['is none', 1, page(404), 2, /\(HTTP 404\)\. Check the address in --url\.\n$/],
])('a gateway that %s at the request %i', async (_how, failing, fail, code, says) => {
  failRequest(failing, fail);
  const { stdout, ...ended } = await runHere([
    'export',
    'persons',
    '--fields',
    'id firstName',
    '--url',
    door.url,
  ]);
  expect(ended).toEqual({ code, stderr: expect.stringMatching(says) });
  expect(stdout === (code === 0 ? whole : '')).toBe(true);
});

/** Ends with the signal only. */
const sleep = async (_ms: number, signal = new AbortController().signal) =>
  void (await once(signal, 'abort'));

test('an export that waits for its gateway ends when it is stopped', async () => {
  const url = await startServer((_request, response) => page(503)(response));
  const args = ['export', 'persons', '--fields', 'id', '--url', url];
  await using command = startHere(args, {}, { clock: { ...systemClock, sleep } });
  await command.printed(/Trying again in 10 s/);
  expect(await command.stop()).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/ 10 s\.\nThe export was stopped\.\n$/),
  });
});

test.skipIf(!canFillDisk)(
  'a full disk ends an export with what to do, and --resume continues it',
  async () => {
    using folder = temporaryFolder();
    const args = exportTo(folder.file('persons'));
    // No file can grow beyond this.
    const { code, stderr } = await runProgram(args, { under: ['prlimit', '--fsize=75000'] });
    expect(stderr).toMatch(
      /cannot be written: .*disk.*\n.* Run the same .* --resume, and without --force, to continue\.\n$/,
    );
    expect([code, existsSync(folder.file('persons'))]).toEqual([1, false]);
    expect(await runHere([...args, '--resume'])).toMatchObject({ code: 0 });
    expect(readFileSync(folder.file('persons'), 'utf8') === whole).toBe(true);
  },
);

test('the line for cron in docs/export.md exports, and prints nothing', async () => {
  using folder = temporaryFolder();
  const [, cron] = /^17 2 \* \* \* \w+ (.*)$/m.exec(blockWith('docs/export.md', '17 2 * * *'))!;
  const here = cron!
    .replace(/https:\S+/, door.url)
    .replaceAll('/srv/exports', folder.path)
    .replaceAll('/srv/recruiting-subgraph', '.');
  expect(await runInShell(here, folder.path, MAIN)).toBe('');
  expect(readFileSync(folder.file('persons.ndjson'), 'utf8') === whole).toBe(true);
});
