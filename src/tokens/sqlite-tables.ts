import { randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { fingerprintOf, SHOWN } from './fingerprint.ts';
import type { Sealer } from './seal.ts';
import { about } from './sqlite-layout.ts';
import type { TokenPair } from './token-set.ts';
import type { FingerprintRing, HistoryEntry, StoredTokens } from './token-store.ts';

/** The statements of the SQLite store. Those that write are called within a transaction. */
export type SqliteTables = ReturnType<typeof prepareTables>;

interface HeadRow {
  id: number;
  name: string;
  base_url: string;
  head: number;
  lost: number;
  moved_to: string | null;
  mark_attempt: string | null;
  mark_at: number;
  access_token: string;
  refresh_token: string;
  fingerprint: string;
  expires_in: number;
  refresh_expires_in: number;
  set_name: string | null;
  saved_at: number;
  imported: number;
  pairs: number;
}

interface NewRow {
  generation: number;
  attempt: string;
  pair: TokenPair;
  at: number;
}

const CURRENT = 'SELECT max(id) FROM token_set WHERE withdrawn = 0';

export function prepareTables(database: DatabaseSync, sealer: Sealer) {
  const head = database.prepare(`
    SELECT s.id, s.name, s.base_url, s.head, s.lost, s.moved_to, s.mark_attempt, s.mark_at, p.access_token,
           p.refresh_token, p.fingerprint, p.expires_in, p.refresh_expires_in, p.set_name, p.saved_at,
           p.imported, count(*) OVER () AS pairs
    FROM token_set s JOIN token_pair p ON p.set_id = s.id AND p.generation = s.head
    WHERE s.id = (${CURRENT}) ORDER BY p.rowid LIMIT 1`);
  const open = database.prepare(`
    SELECT attempt FROM attempt
    WHERE set_id = ? AND generation = ? AND outcome IN ('begun', 'uncertain')`);
  const setByName = database.prepare('SELECT id, base_url FROM token_set WHERE name = ?');
  const insertSet = database.prepare(
    'INSERT INTO token_set (name, base_url, head) VALUES (?, ?, ?)',
  );
  const insertPair = database.prepare(
    'INSERT INTO token_pair VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const insertPrint = database.prepare(
    'INSERT INTO fingerprint VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const insertAttempt = database.prepare(
    `INSERT INTO attempt VALUES (?, (${CURRENT}), ?, ?, ?, NULL, ?)`,
  );

  return {
    /** @param isLive whether the process that marked with this attempt still has the right to it */
    read: (isLive: (attempt: string) => boolean): StoredTokens | null => {
      const row = head.get() as HeadRow | undefined;
      if (!row) return null;
      const live = row.mark_attempt !== null && isLive(row.mark_attempt);
      const unanswered = open
        .all(row.id, row.head)
        .filter(({ attempt }) => !live || attempt !== row.mark_attempt).length;
      return { ...storedTokens(row), unanswered, mark: markOf(row, live) };
    },

    newestGeneration: (): number =>
      (get('SELECT max(generation) AS generation FROM token_pair')?.['generation'] as
        number | null) ?? 0,

    knownGeneration: (refreshToken: string): number | undefined => {
      for (const { id, key } of openRings()) {
        const print = fingerprintOf(key, refreshToken);
        const found = get(
          'SELECT generation FROM fingerprint WHERE ring_id = ? AND fingerprint = ?',
          id,
          print,
        );
        if (found) return found['generation'] as number;
      }
      return undefined;
    },

    insertSet: ({ baseUrl, imported, ...row }: NewRow & { baseUrl: string; imported: boolean }) => {
      const name = randomUUID();
      const { lastInsertRowid } = insertSet.run(name, baseUrl, row.generation);
      writePair({ id: Number(lastInsertRowid), name, baseUrl }, row, imported);
    },

    /** @throws when the set is unknown */
    insertPair: ({ set, ...row }: NewRow & { set: string }) => {
      const found = setByName.get(set) as { id: number; base_url: string } | undefined;
      if (!found) throw new Error(`the token store does not know the set ${set}`);
      writePair({ id: found.id, name: set, baseUrl: found.base_url }, row, false);
    },

    firstAttempt: (set: string, generation: number): unknown =>
      get(
        `SELECT p.attempt FROM token_pair p JOIN token_set s ON s.id = p.set_id
         WHERE s.name = ? AND p.generation = ? ORDER BY p.rowid LIMIT 1`,
        set,
        generation,
      )?.['attempt'],

    moveHead: ({ set, from }: { set: string; from: number }) =>
      run(
        `UPDATE token_set SET head = ?, lost = 0, mark_attempt = NULL, mark_at = NULL
         WHERE name = ? AND head = ?`,
        from + 1,
        set,
        from,
      ),

    writeMark: (mark: { set: string; generation: number; attempt: string; at: number }): boolean =>
      run(
        `UPDATE token_set SET mark_attempt = ?, mark_at = ?
         WHERE id = (${CURRENT}) AND name = ? AND head = ? AND moved_to IS NULL`,
        mark.attempt,
        mark.at,
        mark.set,
        mark.generation,
      ) === 1,

    clearMark: (attempt: string) =>
      run(
        'UPDATE token_set SET mark_attempt = NULL, mark_at = NULL WHERE mark_attempt = ?',
        attempt,
      ),

    /** Where the generation that was exchanged is still the head. */
    writeLost: (attempt: string) =>
      run(
        `UPDATE token_set SET lost = 1 FROM attempt a
         WHERE a.attempt = ? AND token_set.id = a.set_id AND token_set.head = a.generation`,
        attempt,
      ),

    writeMoved: (set: string, to: string | null) =>
      run('UPDATE token_set SET moved_to = ? WHERE name = ?', to, set),

    withdraw: (set: string): boolean =>
      run(
        `UPDATE token_set SET withdrawn = 1 WHERE name = ? AND id = (${CURRENT}) AND EXISTS (
           SELECT 1 FROM token_set b WHERE b.id = (
             SELECT max(c.id) FROM token_set c WHERE c.withdrawn = 0 AND c.id < token_set.id
           ) AND b.lost = 0 AND b.moved_to IS NULL)`,
        set,
      ) === 1,

    insertAttempt: ({
      attempt,
      generation,
      at,
      outcome,
      replica,
    }: Omit<HistoryEntry, 'latencyMs'>) =>
      insertAttempt.run(attempt, generation, at, outcome, replica),

    endAttempt: ({
      attempt,
      outcome,
      latencyMs,
    }: Pick<HistoryEntry, 'attempt' | 'outcome' | 'latencyMs'>) =>
      run(
        'UPDATE attempt SET outcome = ?, latency_ms = ? WHERE attempt = ?',
        outcome,
        latencyMs,
        attempt,
      ),

    history: (limit: number): HistoryEntry[] =>
      database
        .prepare(
          `SELECT at, generation, attempt, outcome, latency_ms AS latencyMs, replica FROM attempt
           ORDER BY rowid DESC LIMIT ?`,
        )
        .all(limit)
        .map((row) => ({ ...row }) as unknown as HistoryEntry),

    rings: (): FingerprintRing[] =>
      openRings().map(({ id, key }) => ({
        key,
        known: database
          .prepare('SELECT fingerprint, generation FROM fingerprint WHERE ring_id = ?')
          .all(id)
          .map((row) => ({ ...row }) as FingerprintRing['known'][number]),
      })),

    addRings: (rings: readonly FingerprintRing[]) => {
      for (const { key, known } of rings) {
        const sealed = sealer.seal(Buffer.from(key).toString('base64'), about.ring);
        const { lastInsertRowid } = database
          .prepare('INSERT INTO ring (key) VALUES (?)')
          .run(sealed);
        for (const { fingerprint, generation } of known) {
          insertPrint.run(lastInsertRowid, fingerprint, generation);
        }
      }
    },

    /** Spent tokens are worth nothing; those of the generation before may still be in somebody's hands. */
    forgetOldPairs: (set: string) =>
      run(
        `DELETE FROM token_pair WHERE (set_id, generation) IN (
           SELECT p.set_id, p.generation FROM token_pair p JOIN token_set s ON s.id = p.set_id
           WHERE s.name = ? AND p.generation < s.head - 1)`,
        set,
      ),

    /** Of sets that were replaced the last one is kept: replacing it may have been a mistake. */
    forgetOldSets: () =>
      run(
        `DELETE FROM token_pair WHERE set_id < (
           SELECT coalesce(max(id), 0) FROM token_set WHERE withdrawn = 0 AND id < (${CURRENT}))`,
      ),

    forgetOldAttempts: (kept: number) =>
      run(
        'DELETE FROM attempt WHERE rowid <= (SELECT max(rowid) FROM attempt) - ? AND outcome <> ?',
        kept,
        'begun',
      ),
  };

  function get(sql: string, ...values: (string | number)[]) {
    return database.prepare(sql).get(...values);
  }

  function run(sql: string, ...values: (string | number | null)[]): number {
    return Number(database.prepare(sql).run(...values).changes);
  }

  function openRings(): { id: number; key: Uint8Array }[] {
    return database
      .prepare('SELECT id, key FROM ring ORDER BY id')
      .all()
      .map(({ id, key }) => ({
        id: id as number,
        key: Buffer.from(sealer.open(key as string, about.ring), 'base64'),
      }));
  }

  function writePair(
    { id, name, baseUrl }: { id: number; name: string; baseUrl: string },
    { generation, attempt, pair, at }: NewRow,
    imported: boolean,
  ): void {
    const [own] = openRings();
    const fingerprint = fingerprintOf(own!.key, pair.refreshToken);
    insertPrint.run(own!.id, fingerprint, generation);
    const sealed = (text: string, field: 'access_token' | 'refresh_token') =>
      sealer.seal(text, about.token(name, baseUrl, generation, field));
    insertPair.run(
      id,
      generation,
      attempt,
      sealed(pair.accessToken, 'access_token'),
      sealed(pair.refreshToken, 'refresh_token'),
      fingerprint,
      pair.expiresIn,
      pair.refreshTokenExpiresIn,
      pair.name,
      at,
      imported ? 1 : 0,
    );
  }

  function storedTokens(row: HeadRow): Omit<StoredTokens, 'mark' | 'unanswered'> {
    const { name: set, base_url: baseUrl, head: generation } = row;
    const opened = (field: 'access_token' | 'refresh_token') =>
      sealer.open(row[field], about.token(set, baseUrl, generation, field));
    return {
      set,
      baseUrl,
      generation,
      pair: {
        accessToken: opened('access_token'),
        refreshToken: opened('refresh_token'),
        expiresIn: row.expires_in,
        refreshTokenExpiresIn: row.refresh_expires_in,
        name: row.set_name,
      },
      fingerprint: row.fingerprint.slice(0, SHOWN),
      savedAt: row.saved_at,
      lost: row.lost === 1,
      movedTo: row.moved_to,
      imported: row.imported === 1,
      surplus: row.pairs - 1,
    };
  }
}

function markOf(
  { mark_attempt: attempt, mark_at: at }: HeadRow,
  live: boolean,
): StoredTokens['mark'] {
  return attempt === null ? null : { attempt, at, live };
}
