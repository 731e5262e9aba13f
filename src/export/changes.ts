import { renameSync, rmSync, statSync } from 'node:fs';
import { OperatorMistake } from '../errors.ts';
import {
  idOfRecord,
  NO_VERSION,
  openChangesState,
  type ChangesList,
  type ChangesState,
} from './changes-state.ts';
import {
  databaseFailure,
  failureOf,
  filesOf,
  publishLeft,
  type ExportOutput,
} from './export-output.ts';
import { OtherLayout } from './export-state.ts';
import type { ExportedRecord } from './exported-pages.ts';
import { adoptFile, createPrivateFile, isTaken, NotOurs } from './private-files.ts';
import { jsonLine } from './record-format.ts';

/*
 * How applying all files of changes gives the list, whatever is cut off
 *
 * A run compares each record with the state of the run before. Its changes are of use only together with the next
 * state: a record that came and went between two runs is in no state, so nobody would ever delete it. So whoever
 * applies the changes must get all of a run's, or none:
 *
 *     1 changes.ndjson.part    the changes are written and flushed to the disk
 *     2 state                  one transaction: the new digests, and that changes.ndjson is not published yet
 *     3 changes.ndjson.part    is renamed to changes.ndjson
 *     4 state                  the file is published
 *
 *     kill before 2    the old state: --resume continues the file, and without it the changes are written again
 *     ... before 3     the next run with this state renames the file before it does anything else
 *     ... before 4     the file has its name: nothing is left to do
 *
 * A record that a walk did not meet may still be in the list: it may have moved from the part that was not read yet to
 * the part that was, and cursors that name positions skip a record when an earlier one is removed. So a record is
 * deleted only after two whole walks did not meet it.
 */

/** The comparison of a list with what was reported of it before. */
export interface Changes {
  /** The version of the state. */
  readonly since: string;
  /** A file of the last run that has got its name only now. */
  readonly left: string | undefined;
  /** The changes of these records, each of which is given once, and their digests. */
  of(records: readonly ExportedRecord[]): Compared;
  /**
   * Writes the deletions, keeps the state, and gives the file its name.
   *
   * @param isProof whether the walk was whole, so that records that it did not meet were not in the list
   * @returns how many records were reported
   */
  finish(output: ExportOutput, isProof: boolean): Promise<Reported>;
  close(): Promise<void>;
}

interface Reported {
  readonly upserts: number;
  readonly deletes: number;
}

type Digested = Pick<ExportOutput, 'digests'>;

interface Compared {
  readonly lines: string;
  /** How many records could not be compared, because the service did not give all of their values. */
  readonly leftOut: number;
  readonly digests: ReadonlyMap<string, string>;
}

/** @throws OperatorMistake unless the state is new, or one of this list */
export function openChanges(path: string, list: ChangesList): Changes {
  const state = openState(path);
  let left: string | undefined;
  try {
    left = publishUnpublished(state);
    if (state.version === undefined) state.begin(list);
    checkSame(state, list, path);
  } catch (error) {
    state.close();
    throw failureOf(error, path);
  }
  return {
    since: state.version ?? NO_VERSION,
    left,
    of: (records) => {
      const digests = new Map<string, string>();
      let lines = '';
      for (const { value, isFaulty } of records) {
        if (value.isNull) continue;
        const id = idOfRecord(value);
        if (id === undefined) throw new OperatorMistake(WITHOUT_ID);
        if (digests.has(id)) throw new OperatorMistake(NOT_UNIQUE);
        const before = state.get(id);
        // A value that could not be read is no change.
        const digest = isFaulty ? before : state.digestOf(id, value);
        if (digest === undefined) continue;
        digests.set(id, digest);
        if (digest !== before) lines += `{"op":"upsert","record":${jsonLine(value)}}\n`;
      }
      const leftOut = records.filter(({ value, isFaulty }) => isFaulty || value.isNull).length;
      return { lines, leftOut, digests };
    },
    finish: async (output, isNowProof) => {
      // An earlier run may have written the deletions.
      const isProof = output.ending?.isProof ?? isNowProof;
      const deleted = isProof ? missingTwice(state, output) : [];
      const upserts = countChanged(state, output);
      await output.finish({
        ending: { isProof },
        lines: deleted.map((id) => `{"op":"delete","id":${id}}\n`).join(''),
        onSynced: (file) => advance(state, output, { isProof, changes: file }, path),
        onPublished: () => state.published(),
      });
      return { upserts, deletes: deleted.length };
    },
    close: async () => state.close(),
  };
}

const WITHOUT_ID =
  'A record of this list has no id, so its changes cannot be told. Export the list without --changes-since.';
const NOT_UNIQUE =
  'The list has an id twice in one page, so its records cannot be told apart. Export the list without --changes-since.';

function missingTwice(state: ChangesState, { digests }: Digested): string[] {
  return Array.from(state.missingBefore()).filter((id) => digests.get(id) === undefined);
}

function countChanged(state: ChangesState, { digests }: Digested): number {
  let changed = 0;
  for (const [id, digest] of digests) if (state.get(id) !== digest) changed += 1;
  return changed;
}

function advance(
  state: ChangesState,
  { digests }: Digested,
  run: Parameters<ChangesState['advance']>[1],
  path: string,
): void {
  try {
    state.advance(digests, run);
  } catch (error) {
    throw failureOf(error, path);
  }
}

function publishUnpublished(state: ChangesState): string | undefined {
  const { unpublished } = state;
  if (!unpublished) return undefined;
  const isLeft = publishLeft(unpublished.path, unpublished.since);
  state.published();
  return isLeft ? unpublished.path : undefined;
}

/** @throws OperatorMistake */
function openState(path: string): ChangesState {
  try {
    for (const file of filesOf(path)) adoptFile(file);
    if (!isTaken(path)) createState(path);
    // SQLite takes an empty file for a new database, and the records that were deleted would never be reported.
    else if (statSync(path).size === 0) throw new OtherLayout();
    return openChangesState(path);
  } catch (error) {
    if (error instanceof NotOurs) throw new OperatorMistake(`${error.message} ${OTHER_PATH}`);
    const failure = databaseFailure(error);
    if (failure === 'busy') {
      throw new OperatorMistake(`Another export uses ${path}. Wait for it, or stop it first.`);
    }
    if (failure !== 'unreadable') throw failureOf(error, path);
    throw new OperatorMistake(
      `${path} is damaged, is not a state of --changes-since, or is one of another version of this program. ` +
        `Take its copy of the same day as the table that the changes were applied to. ${OTHER_PATH}`,
    );
  }
}

/** Under another name first, so that a run that is killed leaves no empty state. */
function createState(path: string): void {
  const unnamed = `${path}.new`;
  rmSync(unnamed, { force: true });
  createPrivateFile(unnamed);
  openChangesState(unnamed).close();
  renameSync(unnamed, path);
}

const OTHER_PATH =
  'Or give --changes-since another path, and empty the table: the first run writes every record.';

/** @throws OperatorMistake */
function checkSame({ list }: ChangesState, now: ChangesList, path: string): void {
  if (list?.source === now.source && list.operation === now.operation) return;
  const was =
    list?.source === now.source
      ? 'with another list, --fields or --args, or the schema has changed'
      : `from ${list?.source}, and this one is from ${now.source}`;
  throw new OperatorMistake(
    `The changes in ${path} were exported ${was}. Run it with the same options. ${OTHER_PATH}`,
  );
}
