/** What a scheduled job needs: one command for every night, and a log to read. */
import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { exportProgress } from '../../src/cli/export-progress.ts';
import type { Service } from '../service/service.ts';
import { blockWith } from '../support/docs/documents.ts';
import { runInShell } from '../support/docs/shell.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { listeningGateway, type ListeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const PERSONS = 1_200;
const folder = temporaryFolder();
let gateway: TestGateway & { sandbox: Service };
let door: ListeningGateway;
let whole: string;
beforeAll(async () => {
  gateway = await startGatewayOverSandbox({ persons: PERSONS });
  door = await listeningGateway(gateway);
  ({ stdout: whole } = await runHere(['export', 'persons', '--url', door.url]));
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

/** Stops an export behind a page. */
async function interrupted(file: string, ...args: string[]): Promise<void> {
  const stopping = new AbortController();
  door.onPiece = (piece, response) => {
    if (piece === 10) response.socket!.destroy();
    if (piece > 10) stopping.abort();
  };
  onTestFinished(() => void (door.onPiece = () => {}));
  const all = ['export', 'persons', '--output', file, ...args, '--url', door.url];
  const { code } = await runHere(all, {}, [], { stop: stopping.signal });
  expect({ code, isThere: existsSync(file) }).toEqual({ code: 1, isThere: false });
  expect(existsSync(`${file}.part`)).toBe(true);
  door.onPiece = () => {};
}

describe('--resume --force', () => {
  test('begins anew if the last export is whole, and continues what was cut off', async () => {
    const file = newFile();
    writeFileSync(file, 'the list of yesterday\n');
    expect((await nightly(file)).code).toBe(0);
    expect(readFileSync(file, 'utf8') === whole).toBe(true);

    const other = newFile();
    await interrupted(other);
    const { code, stderr } = await nightly(other);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(
        /^Continuing the export of allPersons from http.*: \d+ records were written before\.\n[^]*1,200 records in /,
      ),
    });
    expect(readFileSync(other, 'utf8') === whole).toBe(true);
  });

  test.each<[string, string[], (file: string) => void, RegExp]>([
    ['with other fields', ['--fields', 'id firstName'], () => {}, /was begun with another field/],
    ['as CSV', ['--format', 'csv'], () => {}, /was begun as ndjson/],
    ['after the file was cut', [], (file) => truncateSync(`${file}.part`, 3), /is shorter/],
    [
      'after the state was damaged',
      [],
      (file) => writeFileSync(`${file}.part.state`, 'not a database'.repeat(100)),
      /is damaged/,
    ],
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
    expect(stderr).not.toContain('--force');
    expect(readFileSync(file, 'utf8').match(/\n/g)).toHaveLength(
      args.includes('csv') ? PERSONS + 1 : PERSONS,
    );
  });

  test('a mistake leaves everything as it was', async () => {
    const file = newFile();
    await interrupted(file);
    const before = readFileSync(`${file}.part`, 'utf8');
    expect((await nightly(file, '--fields', 'nobody')).code).toBe(2);
    expect((await run('--output', file, '--force', '--args', 'nobody: 1')).code).toBe(2);
    expect(readFileSync(`${file}.part`, 'utf8')).toBe(before);
    expect((await nightly(file)).stderr).toContain('Continuing');
    expect(readFileSync(file, 'utf8') === whole).toBe(true);
  });
});

describe('--limit', () => {
  test.each([1, 60, PERSONS, 5 * PERSONS])('--limit %d is the most that is written', async (n) => {
    const { code, stdout } = await run('--limit', String(n));
    expect(code).toBe(0);
    expect(stdout === firstLines(n)).toBe(true);
  });

  test('a continued export has as many in all', async () => {
    const file = newFile();
    await interrupted(file, '--limit', '900');
    expect((await run('--output', file, '--limit', '900', '--resume')).code).toBe(0);
    expect(readFileSync(file, 'utf8') === firstLines(900)).toBe(true);
  });
});

test('without a terminal, a line after 10 seconds and then each minute has records, pages, rate and the time left', () => {
  const clock = new ManualClock();
  let log = '';
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      log += String(chunk);
      done();
    },
  });
  const from = { records: 1_000, pages: 20 };
  const progress = exportProgress(stream, { clock, from });
  for (let second = 1; second <= 100; second += 1) {
    clock.jump(SECOND);
    progress.show({ records: 1_000 + 500 * second, pages: 20 + 10 * second }, 101_000);
  }
  expect(log.split('\n').map((line) => line.replace(/\[#+\.+\] /, ''))).toEqual([
    '6,000 records  120 pages  500/s  5 %  3 min 10 s left',
    '36,000 records  720 pages  500/s  35 %  2 min 10 s left',
    '',
  ]);
  clock.jump(2 * MINUTE);
  expect(progress.end({ records: 101_000, pages: 2_020 })).toBe('Read 2,000 pages in 3 min 40 s.');
});

test('the line for cron in docs/export.md exports every night', async () => {
  const block = blockWith('docs/export.md', '17 2 * * *');
  const [, command] = /^17 2 \* \* \* \w+ (.*)$/m.exec(block) as unknown as [string, string];
  const file = newFile();
  const here = command
    .replace(/https:\S+/, door.url)
    .replaceAll('/srv/exports/persons.ndjson', file)
    .replaceAll('/srv/exports', folder.path);
  for (const _night of [1, 2]) {
    expect(await runInShell(here, folder.path)).toBe('');
    expect(readFileSync(file, 'utf8') === whole).toBe(true);
  }
});

function firstLines(n: number): string {
  return whole
    .split('\n')
    .slice(0, n)
    .map((line) => line && `${line}\n`)
    .join('');
}
