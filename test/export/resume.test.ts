import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { listeningGateway } from '../support/gateway/listening-gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { startProgram } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { randomRuns } from '../support/random/random-runs.ts';

/** Nine commits. */
const PERSONS = 4_200;
/** Bytes. */
const BETWEEN_MOMENTS = 20_000;
const SUFFIXES = ['.part', '.part.state'];

const part = fc.double({ min: 0, max: 1, noNaN: true });
const insert = fc.record({
  kind: fc.constant('insert' as const),
  at: part,
  count: fc.integer({ min: 1, max: 120 }),
});
const move = fc.record({ kind: fc.constant('move' as const), at: part, to: part });
const remove = fc.record({
  kind: fc.constant('remove' as const),
  at: part,
  count: fc.integer({ min: 1, max: 60 }),
});

test.each([
  ['key', 6, fc.oneof(insert, move, remove)],
  ['record', 3, fc.oneof(insert, move, remove)],
  // A cursor that names an offset skips records when earlier ones leave, for every client of the service.
  ['position', 3, insert],
] as const)(
  'wherever an export over %s cursors is interrupted, --resume gives the same file, and after changes repeats no record and loses none that stayed',
  async (cursors, runs, change) => {
    using folder = temporaryFolder();
    await using gateway = await startGatewayOverService({ persons: PERSONS, cursors });
    await using door = await listeningGateway(gateway);
    const { persons } = gateway.service;
    const exportTo = (file: string, ...more: string[]) =>
      runHere(['export', 'persons', '--output', file, '--url', door.url, ...more]);

    // The files that a kill leaves at several moments of an export.
    const moments: string[] = [];
    const first = folder.file('first');
    const over = exportTo(first).then(() => true);
    let copied = 0;
    while (!(await Promise.race([over, nextTurn(false)]))) {
      const size = statSync(`${first}.part`, { throwIfNoEntry: false })?.size ?? 0;
      if (size < copied + BETWEEN_MOMENTS || !existsSync(`${first}.part.state`)) continue;
      copied = size;
      moments.push(folder.file(`moment-${size}`));
      copyExport(first, moments.at(-1)!);
    }
    const whole = readFileSync(first, 'utf8');
    expect(idsIn(whole)).toEqual(persons.all().map(({ id }) => id));
    expect(moments.length).toBeGreaterThan(4);

    const cuts = { moment: fc.nat(moments.length - 1), log: part, rest: part };
    /** Leaves what an interruption can leave: its state, and the file after the committed part, cut anywhere. */
    const interrupt = ({ moment, log, rest }: { moment: number; log: number; rest: number }) => {
      const file = folder.file('interrupted');
      rmSync(file, { force: true });
      copyExport(moments[moment]!, file);
      const [written, state] = SUFFIXES.map((suffix) => file + suffix) as [string, string];
      truncateSync(state, Math.round(log * statSync(state).size));
      const committed = committedIn(state);
      truncateSync(written, committed + Math.round(rest * (statSync(written).size - committed)));
      return file;
    };
    const resumed = async (file: string) => {
      expect(await exportTo(file, '--resume')).toMatchObject({ code: 0 });
      const left = readdirSync(folder.path).filter((name) => name.startsWith('interrupted.'));
      expect(left).toEqual([]);
      return readFileSync(file, 'utf8');
    };
    // In the middle of a line after the last commit.
    const late = { moment: moments.length - 1, log: 1, rest: 0.5 };
    const same = fc.asyncProperty(fc.record(cuts), async (cut) => {
      expect((await resumed(interrupt(cut))) === whole).toBe(true);
    });
    await fc.assert(same, { endOnFailure: true, numRuns: randomRuns(runs), examples: [[late]] });

    const before = new Set(idsIn(whole));
    // Also those of earlier runs: the list stays as they left it, and the interrupted files are of the first one.
    const moved = new Set<string>();
    const changes = fc.array(change, { minLength: 1, maxLength: 4 });
    const changed = fc.asyncProperty(fc.record(cuts), changes, async (cut, edits) => {
      const file = interrupt(cut);
      for (const edit of edits) {
        const at = positionOf(edit.at, persons.length);
        if (edit.kind === 'insert') persons.insert(at, edit.count);
        else if (edit.kind === 'remove') persons.remove(at, edit.count);
        else {
          moved.add(persons.slice(at, at + 1)[0]!.id);
          persons.move(at, positionOf(edit.to, persons.length));
        }
      }
      const ids = idsIn(await resumed(file));
      const written = new Set(ids);
      expect(written.size).toBe(ids.length);
      const stayed = persons.all().filter(({ id }) => before.has(id) && !moved.has(id));
      expect(stayed.filter(({ id }) => !written.has(id))).toEqual([]);
    });
    await fc.assert(changed, {
      endOnFailure: true,
      numRuns: randomRuns(4),
      // An exported record is moved to where the export continues.
      examples: cursors === 'position' ? [] : [[late, [{ kind: 'move', at: 0.01, to: 1 }]]],
    });
  },
);

test('an export that is killed, and then stopped, is whole in the end', async () => {
  using folder = temporaryFolder();
  await using gateway = await startGatewayOverService({ persons: PERSONS });
  await using door = await listeningGateway(gateway);
  const file = folder.file('persons.csv');
  const args = ['export', 'persons', '--output', file, '--url', door.url, '--resume'];
  for (const [signal, request, exit] of [
    ['SIGKILL', 8, { code: null }],
    ['SIGINT', 6, { code: 1, stderr: expect.stringMatching(/ stopped\. .* --resume to continue/) }],
  ] as const) {
    await using program = startProgram(args);
    door.onRequest = (at) => {
      if (at === request) program.signal(signal);
    };
    expect(await program.ended).toMatchObject(exit);
    expect(existsSync(file)).toBe(false);
    expect(statSync(`${file}.part`).size).toBeGreaterThan(0);
  }
  // Two at once would mix their lines.
  await using lastRun = startProgram(args);
  const second = Promise.withResolvers<Awaited<ReturnType<typeof runHere>>>();
  door.onRequest = (at) => {
    if (at === 5) runHere(args).then(second.resolve, second.reject);
  };
  expect(await lastRun.ended).toMatchObject({ code: 0, signal: null });
  expect(await second.promise).toMatchObject({
    stderr: expect.stringMatching(/Another export is writing|is whole already/),
  });
  const [header, ...rows] = readFileSync(file, 'utf8').trimEnd().split('\n');
  expect(header).toBe('id,firstName');
  const ids = gateway.service.persons.all().map(({ id }) => id);
  expect(rows.map((row) => row.split(',')[0])).toEqual(ids);
  expect(readdirSync(folder.path)).toEqual(['persons.csv']);
});

function copyExport(from: string, to: string): void {
  for (const suffix of SUFFIXES) copyFileSync(from + suffix, to + suffix);
}

/** A position that leaves enough records for the removal. */
function positionOf(share: number, length: number): number {
  return Math.floor(share * (length - 60));
}

/** The length of the file that the last whole line of the state has recorded. */
function committedIn(state: string): number {
  const commits = readFileSync(state, 'utf8').split('\n').slice(1, -1);
  return commits.length === 0 ? 0 : (JSON.parse(commits.at(-1)!) as { bytes: number }).bytes;
}

function idsIn(text: string): string[] {
  const lines = text.trimEnd().split('\n');
  return lines.map((line) => (JSON.parse(line) as { id: string }).id);
}
