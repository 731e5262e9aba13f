import type { DatabaseSync } from 'node:sqlite';
import type { HistoryEntry } from './token-store.ts';

/** The audit trail: every exchange that was begun, how it ended, and where sets came from and went to. */
export type Attempts = ReturnType<typeof prepareAttempts>;

const KEPT = 1_000;

export function prepareAttempts(database: DatabaseSync) {
  const insert = database.prepare(`
    INSERT INTO attempt (attempt, set_name, generation, at, outcome, replica)
    VALUES (?, ?, ?, ?, ?, ?)`);
  // Those that were never answered are counted, however long ago they were.
  const forget = database.prepare(`
    DELETE FROM attempt WHERE id <= (SELECT max(id) FROM attempt) - ?
    AND outcome NOT IN ('begun', 'uncertain')`);
  const find = database.prepare(
    'SELECT set_name AS "set", generation FROM attempt WHERE attempt = ?',
  );
  // What was received is never made less clear by what is said of it later.
  const end = database.prepare(`
    UPDATE attempt SET outcome = ?, latency_ms = ?
    WHERE attempt = ? AND outcome IN ('begun', 'uncertain')`);
  const open = database.prepare(`
    SELECT count(*) AS count FROM attempt
    WHERE set_name = ? AND generation = ? AND outcome IN ('begun', 'uncertain') AND attempt IS NOT ?`);
  const newest = database.prepare(`
    SELECT at, generation, attempt, outcome, latency_ms AS latencyMs, replica FROM attempt
    ORDER BY id DESC LIMIT ?`);

  return {
    add: (entry: Omit<HistoryEntry, 'latencyMs'> & { set: string }): void => {
      const { attempt, set, generation, at, outcome, replica } = entry;
      insert.run(attempt, set, generation, Math.round(at), outcome, replica);
      forget.run(KEPT);
    },
    find: (attempt: string) => find.get(attempt) as { set: string; generation: number } | undefined,
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
