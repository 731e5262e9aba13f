import { copyFileSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startFront } from '../support/gateway/front.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { randomRuns } from '../support/random/random-runs.ts';

/** Nine windows, each with a commit, behind the three requests that find the list. */
const PERSONS = 4_200;
const LAST_REQUEST = 11;
const SUFFIXES = ['.part', '.part.state'];

const part = fc.double({ min: 0, max: 1, noNaN: true });
const count = fc.integer({ min: 1, max: 60 });
const insert = fc.record({ kind: fc.constant('insert' as const), at: part, count });
const move = fc.record({ kind: fc.constant('move' as const), at: part, to: part });
const remove = fc.record({ kind: fc.constant('remove' as const), at: part, count });
const cuts = fc.record({ log: part, rest: part });
/** In the middle of a line after the last commit. */
const LATE = { log: 1, rest: 0.5 };

test.each([
  ['key', 6, fc.oneof(insert, move, remove)],
  ['record', 3, fc.oneof(insert, move, remove)],
  // A cursor that names an offset skips records when earlier ones leave, for every client of the service.
  ['position', 3, insert],
] as const)(
  'wherever an export over %s cursors is interrupted, --resume gives the same file, and after changes repeats no record and loses none that stayed',
  async (cursors, runs, change) => {
    using folder = temporaryFolder();
    const first = folder.file('first');
    const left = folder.file('left');
    const file = folder.file('interrupted');
    let requests = 0;
    let another: ReturnType<typeof runHere> | undefined;
    const onRequest = () => {
      if ((requests += 1) !== LAST_REQUEST) return;
      // What an interruption before the last commit leaves. Both files only grow, so that every earlier one is cut from it.
      copyExport(first, left);
      another = exportTo(first, '--resume');
    };
    await using gateway = await startFront(
      { persons: PERSONS, cursors },
      { plugins: [{ onRequest }] },
    );
    const { persons } = gateway.service;
    const exportTo = (path: string, ...more: string[]) =>
      runHere(['export', 'persons', '--output', path, '--url', gateway.url, ...more]);

    expect(await exportTo(first)).toMatchObject({ code: 0 });
    expect(await another).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^Another export/),
    });
    const whole = readFileSync(first, 'utf8');
    expect(idsIn(whole)).toEqual(persons.all().map(({ id }) => id));

    const resumed = async ({ log, rest }: typeof LATE) => {
      copyExport(left, file);
      const [written, state] = SUFFIXES.map((suffix) => file + suffix) as [string, string];
      truncateSync(state, Math.round(log * statSync(state).size));
      const committed = committedIn(state);
      truncateSync(written, committed + Math.round(rest * (statSync(written).size - committed)));
      expect(await exportTo(file, '--resume', '--force')).toMatchObject({ code: 0 });
      expect(readdirSync(folder.path).filter((name) => name.includes('interrupted.'))).toEqual([]);
      return readFileSync(file, 'utf8');
    };
    const same = fc.asyncProperty(cuts, async (cut) => {
      expect((await resumed(cut)) === whole).toBe(true);
    });
    await fc.assert(same, { endOnFailure: true, numRuns: randomRuns(runs), examples: [[LATE]] });

    const before = new Set(idsIn(whole));
    // Also those of earlier runs: the list stays as they left it, and the interrupted files are of the first one.
    const moved = new Set<string>();
    const changes = fc.array(change, { minLength: 1, maxLength: 4 });
    const changed = fc.asyncProperty(cuts, changes, async (cut, edits) => {
      for (const edit of edits) {
        const at = positionOf(edit.at, persons.length);
        if (edit.kind === 'insert') persons.insert(at, edit.count);
        else if (edit.kind === 'remove') persons.remove(at, edit.count);
        else {
          moved.add(persons.slice(at, at + 1)[0]!.id);
          persons.move(at, positionOf(edit.to, persons.length));
        }
      }
      const ids = idsIn(await resumed(cut));
      const written = new Set(ids);
      expect(written.size).toBe(ids.length);
      const stayed = persons.all().filter(({ id }) => before.has(id) && !moved.has(id));
      expect(stayed.filter(({ id }) => !written.has(id))).toEqual([]);
    });
    await fc.assert(changed, {
      endOnFailure: true,
      numRuns: randomRuns(4),
      // An exported record is moved to where the export continues.
      examples: cursors === 'position' ? [] : [[LATE, [{ kind: 'move', at: 0.01, to: 1 }]]],
    });
  },
);

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
  return text
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { id: string }).id);
}
