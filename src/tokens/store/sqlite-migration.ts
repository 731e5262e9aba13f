import type { DatabaseSync } from 'node:sqlite';
import type { Sealer } from './seal.ts';
import { createLayout } from './sqlite-layout.ts';
import { prepareTables, type SqliteTables } from './sqlite-tables.ts';

interface OldSet {
  id: number;
  base_url: string;
  head: number;
  lost: number;
  mark_attempt: string | null;
  mark_until: number | null;
}

interface OldPair {
  rowid: number;
  generation: number;
  attempt: string;
  access_token: string;
  refresh_token: string;
  expires_in: number;
  refresh_expires_in: number;
  name: string | null;
  saved_at: number;
}

const REPLICA = 'an earlier version';

/** Brings a store of layout 1 up to this one, with all that is in it. Within a transaction. */
export function migrateFirstLayout(database: DatabaseSync, sealer: Sealer): void {
  database.exec(
    'ALTER TABLE token_set RENAME TO old_set; ALTER TABLE token_pair RENAME TO old_pair;',
  );
  createLayout(database, sealer);
  const tables = prepareTables(database, sealer);
  const sets = database.prepare('SELECT * FROM old_set ORDER BY id').all();
  const pairsOf = database.prepare('SELECT rowid, * FROM old_pair WHERE set_id = ? ORDER BY rowid');
  for (const set of sets as unknown as OldSet[]) {
    takeOver(tables, set, pairsOf.all(set.id) as unknown as OldPair[]);
  }
  database.exec('DROP TABLE old_pair; DROP TABLE old_set;');
}

function takeOver(tables: SqliteTables, old: OldSet, pairs: readonly OldPair[]): void {
  const added = tables.addSet(old.base_url, old.head);
  const set = {
    ...added,
    lost: old.lost,
    mark_attempt: old.mark_attempt,
    mark_at: old.mark_attempt === null ? null : (old.mark_until ?? 0),
  };
  tables.writeSet(set);
  for (const row of pairs) {
    const { rowid, generation, attempt, saved_at: savedAt } = row;
    const imported = attempt === 'import';
    tables.addPair(set, {
      generation,
      attempt,
      savedAt,
      imported,
      // The first version used the newest pair of a generation.
      wasHead: !pairs.some((other) => other.generation === generation && other.rowid > rowid),
      pair: {
        accessToken: row.access_token,
        refreshToken: row.refresh_token,
        expiresIn: row.expires_in,
        refreshTokenExpiresIn: row.refresh_expires_in,
        name: row.name,
      },
    });
    tables.attempts.add({
      set: set.name,
      attempt,
      at: savedAt,
      replica: REPLICA,
      ...(imported
        ? { generation, outcome: 'imported' }
        : { generation: generation - 1, outcome: 'rotated' }),
    });
  }
  const { mark_attempt: attempt, mark_at: at } = set;
  if (attempt === null) return;
  const entry = { set: set.name, attempt, generation: set.head, at: at!, replica: REPLICA };
  tables.attempts.add({ ...entry, outcome: 'begun' });
}
