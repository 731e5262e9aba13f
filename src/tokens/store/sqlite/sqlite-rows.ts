import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { TokenPair } from '../../token-set.ts';
import type { ClaimEnds } from '../claim-ends.ts';
import { fingerprintOf, storeIdOf } from '../fingerprint.ts';
import {
  currentSet,
  DAMAGED,
  headPair,
  FORGOTTEN,
  isForgotten,
  KEPT_ATTEMPTS,
  OPEN_OUTCOMES,
  READ_OUTCOMES,
  type AttemptRow,
  type ClaimRow,
  type PairRow,
  type Rows,
  type RowWriter,
  type SetRow,
} from '../rows.ts';
import { contexts, sealJson, type Sealer } from '../seal.ts';
import { StoreUnreadableError, type FingerprintRing, type HistoryEntry } from '../token-store.ts';
import type { ExchangeLock } from './lock.ts';

/** The rows of a SQLite store. Every row of a set or a pair has a checksum: SQLite finds damage to its pages only. */
export type SqliteRows = ReturnType<typeof prepareRows>;

/** What the rows do not say: who has the lock, what time it is, and how long claims have been seen. */
export interface Present {
  readonly lock: ExchangeLock;
  readonly claimEnds: ClaimEnds;
  readonly now: number;
}

const [OPEN, READ] = [OPEN_OUTCOMES, READ_OUTCOMES].map((outcomes) =>
  outcomes.map((outcome) => `'${outcome}'`).join(', '),
);

export function prepareRows(database: DatabaseSync, sealer: Sealer) {
  const prepare = (sql: string) => database.prepare(sql);
  const selectSets = prepare('SELECT * FROM token_set ORDER BY id DESC');
  const putSet = prepare(`
    INSERT INTO token_set (id, name, base_url, head, lost, moved_to, withdrawn, claim, sum)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET head = excluded.head, lost = excluded.lost, moved_to = excluded.moved_to,
      withdrawn = excluded.withdrawn, claim = excluded.claim, sum = excluded.sum`);
  const selectPairs = prepare(
    'SELECT * FROM token_pair WHERE set_id = ? AND generation >= ? ORDER BY rowid',
  );
  const insertPair = prepare(`
    INSERT INTO token_pair (set_id, generation, attempt, pair, saved_at, imported, was_head, sum)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (set_id, generation, attempt) DO UPDATE SET
      pair = excluded.pair, saved_at = excluded.saved_at, imported = excluded.imported,
      was_head = excluded.was_head, sum = excluded.sum
    WHERE token_pair.pair = '' OR NOT token_pair.was_head`);
  const forgetPair = prepare(
    "UPDATE token_pair SET pair = '', sum = ? WHERE set_id = ? AND generation = ? AND attempt = ?",
  );
  const dropForgotten = prepare(
    "DELETE FROM token_pair WHERE set_id = ? AND generation < ? AND pair = ''",
  );
  const attemptColumns =
    'at, generation, attempt, outcome, latency_ms AS latencyMs, replica, set_name AS "set"';
  const selectAttempts = prepare(`
    SELECT ${attemptColumns} FROM attempt WHERE outcome IN (${READ}) OR attempt = ? ORDER BY id`);
  const selectHistory = prepare(`SELECT ${attemptColumns} FROM attempt ORDER BY id DESC LIMIT ?`);
  const insertAttempt = prepare(`
    INSERT INTO attempt (attempt, set_name, generation, at, outcome, replica)
    VALUES (?, ?, ?, ?, ?, ?)`);
  // Those are read, however long ago they were.
  const dropAttempts = prepare(`
    DELETE FROM attempt WHERE id <= (SELECT max(id) FROM attempt) - ?
    AND outcome NOT IN (${READ})`);
  const endAttempt = prepare(`
    UPDATE attempt SET outcome = ?, latency_ms = ?
    WHERE attempt = ? AND outcome IN (${OPEN})`);
  const selectRings = prepare('SELECT id, key FROM ring ORDER BY id');
  const selectOwnRing = prepare('SELECT id, key FROM ring ORDER BY id LIMIT 1');
  const insertRing = prepare('INSERT INTO ring (key) VALUES (?)');
  const insertFingerprint = prepare(
    'INSERT INTO fingerprint VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
  );
  const findFingerprint = prepare(
    'SELECT generation FROM fingerprint WHERE ring_id = ? AND fingerprint = ?',
  );
  const selectFingerprints = prepare(
    'SELECT fingerprint, generation FROM fingerprint WHERE ring_id = ? ORDER BY rowid',
  );
  let own: OwnRing | undefined;

  const write: RowWriter = {
    putSet: (set) => {
      const { id, name, baseUrl, head, lost, movedTo, withdrawn, claim } = set;
      const claimed = claim && JSON.stringify(claim);
      const flags = [Number(lost), movedTo, Number(withdrawn)] as const;
      putSet.run(id, name, baseUrl, head, ...flags, claimed, setSum(ownRing().key, set));
    },
    addPair: (set, row) => {
      const { generation, attempt, pair, savedAt, imported, wasHead } = row;
      const sealed = sealJson(pair, contexts.pair(set, generation), sealer);
      const flags = [Number(imported), Number(wasHead)] as const;
      const { id, key } = ownRing();
      insertPair.run(
        set.id,
        generation,
        attempt,
        sealed,
        savedAt,
        ...flags,
        pairSum(key, set, row),
      );
      insertFingerprint.run(id, fingerprintOf(key, pair.refreshToken), generation);
    },
    forgetPair: (set, row) => {
      if (isForgotten(row)) return;
      const sum = pairSum(ownRing().key, set, { ...row, pair: FORGOTTEN });
      forgetPair.run(sum, set.id, row.generation, row.attempt);
    },
    dropForgotten: (set, before) => void dropForgotten.run(set.id, before),
    addAttempt: ({ attempt, set, generation, at, outcome, replica }) => {
      insertAttempt.run(attempt, set, generation, at, outcome, replica);
      dropAttempts.run(KEPT_ATTEMPTS);
    },
    endAttempt: (attempt, outcome, latencyMs) =>
      void endAttempt.run(outcome, Math.round(latencyMs), attempt),
    addRings: (added) => {
      for (const { key, known } of added) {
        const same = rings().find((ring) => ring.key.equals(key));
        const sealed = () => sealer.seal(Buffer.from(key).toString('base64'), contexts.ring);
        const id = same?.id ?? insertRing.run(sealed()).lastInsertRowid;
        for (const { fingerprint, generation } of known) {
          insertFingerprint.run(id, fingerprint, generation);
        }
      }
    },
  };

  return {
    write,

    /** Within a transaction. @param attempt the one that the call is about */
    read: ({ lock, claimEnds, now }: Present, attempt = ''): Rows => ({
      storeId: ownRing().storeId,
      now,
      sets: sets(),
      pairs,
      attempts: selectAttempts.all(attempt) as unknown as AttemptRow[],
      knownAs,
      rings: fingerprints,
      lock: lock.inode ?? null,
      isLive: (claim) =>
        lock.heldFor === claim.attempt ||
        lock.isHeldByOthers() ||
        (isUnseen(claim, lock) && !claimEnds.isOver(claim, now)),
      isExclusive: (before) => before === null || before.ended || isSeen(before, lock),
    }),

    history: (limit: number): HistoryEntry[] =>
      selectHistory.all(limit).map((row) => {
        const { set: _set, ...entry } = row as unknown as AttemptRow;
        return entry;
      }),

    /** @throws Error, or SealError, if anything is damaged or cannot be decrypted */
    verify: (): void => {
      fingerprints();
      const rows = { sets: sets(), pairs };
      for (const set of rows.sets) pairs(set);
      const current = currentSet(rows);
      if (current) headPair(rows, current);
      else if (rows.sets.length > 0) throw new StoreUnreadableError(DAMAGED);
    },
  };

  function sets(): SetRow[] {
    const { key } = ownRing();
    return selectSets.all().map((row) => {
      const set = setOf(row);
      if (row['sum'] !== setSum(key, set)) throw new StoreUnreadableError(DAMAGED);
      return set;
    });
  }

  function pairs(set: SetRow, from = 0): PairRow[] {
    const { key } = ownRing();
    return selectPairs.all(set.id, from).map((row) => {
      const kept = pairOf(row, set, sealer);
      if (row['sum'] !== pairSum(key, set, kept)) throw new StoreUnreadableError(DAMAGED);
      return kept;
    });
  }

  function rings(): { id: number; key: Buffer }[] {
    return selectRings.all().map(({ id, key }) => ({
      id: id as number,
      key: Buffer.from(sealer.open(key as string, contexts.ring), 'base64'),
    }));
  }

  /** The first ring is the store's own. It is another one after another store was written over the file. */
  function ownRing(): OwnRing {
    const row = selectOwnRing.get();
    if (!row)
      throw new StoreUnreadableError(
        'the file is damaged: it has lost the key of its fingerprints',
      );
    const sealed = row['key'] as string;
    if (own?.sealed === sealed) return own;
    const key = createSecretKey(Buffer.from(sealer.open(sealed, contexts.ring), 'base64'));
    own = { sealed, id: row['id'] as number, key, storeId: storeIdOf(key) };
    return own;
  }

  function knownAs(refreshToken: string): number | undefined {
    for (const { id, key } of rings()) {
      const row = findFingerprint.get(id, fingerprintOf(key, refreshToken));
      if (row) return row['generation'] as number;
    }
    return undefined;
  }

  function fingerprints(): FingerprintRing[] {
    return rings().map(({ id, key }) => ({
      key,
      known: selectFingerprints.all(id).map((row) => ({ ...row })) as never,
    }));
  }
}

interface OwnRing {
  readonly sealed: string;
  readonly id: number;
  readonly key: KeyObject;
  readonly storeId: string;
}

type Row = Record<string, unknown>;

/** Whether the lock that is there now shows whether the claim's process lives: the file may have been deleted since. */
function isSeen(claim: ClaimRow, lock: ExchangeLock): boolean {
  return claim.lock === null || claim.lock === lock.inode;
}

function isUnseen(claim: ClaimRow, lock: ExchangeLock): boolean {
  return !claim.ended && !isSeen(claim, lock);
}

function setOf(row: Row): SetRow {
  const { id, name, base_url: baseUrl, head, moved_to: movedTo, claim } = row;
  const [lost, withdrawn] = [row['lost'] === 1, row['withdrawn'] === 1];
  return { id, name, baseUrl, head, lost, movedTo, withdrawn, claim: claimIn(claim) } as SetRow;
}

function claimIn(text: unknown): ClaimRow | null {
  try {
    return text === null ? null : (JSON.parse(text as string) as ClaimRow);
  } catch {
    throw new StoreUnreadableError(DAMAGED);
  }
}

function pairOf(row: Row, set: SetRow, sealer: Sealer): PairRow {
  const { generation, attempt, pair: sealed, saved_at: savedAt } = row;
  const opened = () => sealer.open(sealed as string, contexts.pair(set, generation as number));
  const pair = sealed === '' ? FORGOTTEN : tokensIn(opened());
  const [imported, wasHead] = [row['imported'] === 1, row['was_head'] === 1];
  return { generation, attempt, pair, savedAt, imported, wasHead } as PairRow;
}

function tokensIn(text: string): TokenPair {
  try {
    return JSON.parse(text) as TokenPair;
  } catch {
    throw new StoreUnreadableError(DAMAGED);
  }
}

function setSum(key: KeyObject, set: SetRow): string {
  const { id, name, baseUrl, head, lost, movedTo, withdrawn, claim } = set;
  return sumOf(key, ['set', id, name, baseUrl, head, lost, movedTo, withdrawn, claim]);
}

function pairSum(key: KeyObject, { name }: SetRow, row: PairRow): string {
  const { generation, attempt, pair, savedAt, imported, wasHead } = row;
  return sumOf(key, ['pair', name, generation, attempt, savedAt, imported, wasHead, pair]);
}

function sumOf(key: KeyObject, values: readonly unknown[]): string {
  return createHmac('sha256', key).update(JSON.stringify(values)).digest('hex');
}
