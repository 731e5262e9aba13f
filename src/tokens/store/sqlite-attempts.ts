import type { KeyObject } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { guardSum } from './sqlite-sums.ts';
import type { HistoryEntry } from './token-store.ts';

/** The audit trail: every exchange that was begun, how it ended, and where sets came from and went to. */
export type Attempts = ReturnType<typeof prepareAttempts>;

/** What guards an exchange that is under way. */
export interface Guard {
  /** Of the lock file. */
  readonly inode: string | undefined;
  /** Wall time, ms. */
  readonly now: number;
}

const KEPT = 1_000;

// Made when it is first needed: a version without it can use the store too.
const LOCK_OF_CLAIM =
  'lock_of_claim (attempt TEXT PRIMARY KEY, inode TEXT NOT NULL, until INTEGER NOT NULL, sum TEXT NOT NULL) STRICT';

/** @param ownKey of the store, for checksums */
export function prepareAttempts(database: DatabaseSync, ownKey: () => KeyObject) {
  const insert = database.prepare(`
    INSERT INTO attempt (attempt, set_name, generation, at, outcome, replica)
    VALUES (?, ?, ?, ?, ?, ?)`);
  // Those that were never answered are counted, however long ago they were.
  const forget = database.prepare(`
    DELETE FROM attempt WHERE id <= (SELECT max(id) FROM attempt) - ?
    AND outcome NOT IN ('begun', 'uncertain')`);
  const find = database.prepare(
    'SELECT set_name AS "set", generation, outcome FROM attempt WHERE attempt = ?',
  );
  // What was received is never made less clear by what is said of it later.
  const end = database.prepare(`
    UPDATE attempt SET outcome = ?, latency_ms = ?
    WHERE attempt = ? AND outcome IN ('begun', 'uncertain')`);
  const open = database.prepare(`
    SELECT count(*) AS count FROM attempt
    WHERE set_name = ? AND generation = ? AND outcome IN ('begun', 'uncertain') AND attempt IS NOT ?`);
  const hasGuards = database.prepare('SELECT 1 FROM sqlite_schema WHERE sql = ?');
  const newest = database.prepare(`
    SELECT at, generation, attempt, outcome, latency_ms AS latencyMs, replica FROM attempt
    ORDER BY id DESC LIMIT ?`);

  return {
    add: (entry: Omit<HistoryEntry, 'latencyMs'> & { set: string }): void => {
      const { attempt, set, generation, at, outcome, replica } = entry;
      insert.run(attempt, set, generation, Math.round(at), outcome, replica);
      forget.run(KEPT);
    },
    find: (attempt: string) => find.get(attempt) as FoundAttempt | undefined,
    /** @param lifeMs how long the exchange of this claim may take */
    guard: (attempt: string, { inode, now }: Guard, lifeMs: number): void => {
      if (inode === undefined) return;
      database.exec(`CREATE TABLE IF NOT EXISTS ${LOCK_OF_CLAIM}; DELETE FROM lock_of_claim;`);
      const until = Math.round(now + lifeMs);
      const sum = guardSum(ownKey(), attempt, inode, until);
      database
        .prepare('INSERT INTO lock_of_claim VALUES (?, ?, ?, ?)')
        .run(attempt, inode, until, sum);
    },
    /**
     * Whether the lock of a claim was on another file than the one that lies there now, so that nothing can be seen
     * of its process: until when it may go on, ms. Undefined when the lock says whether it lives, and where this was
     * altered.
     */
    unseenUntil: (attempt: string, { inode }: Guard): number | undefined => {
      if (
        find.get(attempt)?.['outcome'] !== 'begun' ||
        !hasGuards.get(`CREATE TABLE ${LOCK_OF_CLAIM}`)
      )
        return undefined;
      const row = database.prepare('SELECT * FROM lock_of_claim WHERE attempt = ?').get(attempt);
      const guard = row as unknown as { inode: string; until: number; sum: string } | undefined;
      if (!guard || guard.inode === inode) return undefined;
      const isWhole = guard.sum === guardSum(ownKey(), attempt, guard.inode, guard.until);
      return isWhole ? guard.until : undefined;
    },
    end: (attempt: string, outcome: HistoryEntry['outcome'], latencyMs: number): void => {
      end.run(outcome, Math.round(latencyMs), attempt);
    },
    /** @param except an attempt that is under way */
    countOpen: (set: string, generation: number, except: string | null): number =>
      open.get(set, generation, except)?.['count'] as number,
    newest: (limit: number): HistoryEntry[] =>
      newest.all(limit).map((row) => ({ ...row }) as unknown as HistoryEntry),
  };
}

interface FoundAttempt {
  readonly set: string;
  readonly generation: number;
  readonly outcome: HistoryEntry['outcome'];
}
