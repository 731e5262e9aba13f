import { copyFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startFront } from '../support/gateway/front.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { randomRuns } from '../support/random/random-runs.ts';

/** Nine windows, each with a commit, behind the request that finds the list. */
const PERSONS = 4_200;
const FIRST_REQUEST = 3;
const WINDOWS = 8;
const STATE = '.part.db';

const part = fc.double({ min: 0, max: 1, noNaN: true });
const count = fc.integer({ min: 1, max: 60 });
const insert = fc.record({ kind: fc.constant('insert' as const), at: part, count });
const move = fc.record({ kind: fc.constant('move' as const), at: part, to: part });
const remove = fc.record({ kind: fc.constant('remove' as const), at: part, count });
/** Behind how many windows a process is killed. */
const cuts = fc.integer({ min: 0, max: WINDOWS - 1 });
const LATE = WINDOWS - 1;

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
      // What a kill leaves before the request of each window.
      const windows = (requests += 1) - FIRST_REQUEST;
      if (windows < 0 || windows >= WINDOWS) return;
      copyFileSync(first + STATE, `${left}${windows}`);
      another ??= exportTo(first, '--resume');
    };
    await using gateway = await startFront(
      { persons: PERSONS, cursors },
      { plugins: [{ onRequest }] },
    );
    const { persons } = gateway.service;
    const exportTo = (path: string, ...more: string[]) =>
      runHere([
        'export',
        'persons',
        '--fields',
        'id firstName',
        '--output',
        path,
        '--url',
        gateway.url,
        ...more,
      ]);

    expect(await exportTo(first)).toMatchObject({ code: 0 });
    expect(await another).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/ is locked\. If another export is writing it, wait/),
    });
    const whole = readFileSync(first, 'utf8');
    expect(idsIn(whole)).toEqual(persons.all().map(({ id }) => id));

    const resumed = async (windows: number) => {
      copyFileSync(`${left}${windows}`, file + STATE);
      rmSync(file, { force: true });
      expect(await exportTo(file, '--resume')).toMatchObject({ code: 0 });
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

/** A position that leaves enough records for the removal. */
function positionOf(share: number, length: number): number {
  return Math.floor(share * (length - 60));
}

function idsIn(text: string): string[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { id: string }).id);
}
