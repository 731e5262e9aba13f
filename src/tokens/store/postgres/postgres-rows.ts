import { createSecretKey, randomBytes } from 'node:crypto';
import type { ClaimEnds } from '../claim-ends.ts';
import { fingerprintOf, storeIdOf } from '../fingerprint.ts';
import {
  DAMAGED,
  FORGOTTEN,
  isForgotten,
  KEPT_ATTEMPTS,
  type AttemptRow,
  type ClaimRow,
  type PairRow,
  type Rows,
  type RowWriter,
  type SetRow,
} from '../rows.ts';
import { contexts, openJson, sealJson, type Sealer } from '../seal.ts';
import { StoreUnreadableError, type FingerprintRing } from '../token-store.ts';
import type { Run } from './connection.ts';
import type { Row, StatementName, Value } from './statements.ts';

/** What a call needs besides the sets and their pairs. */
export interface Wanted {
  /** A refresh token that is looked for among all that the store had. */
  readonly token?: string;
  readonly attempt?: string;
  /** All fingerprints. */
  readonly rings?: boolean;
}

interface Ring {
  readonly id: number;
  readonly key: Buffer;
}

/** What is needed to understand the rows. */
export interface RowReading {
  readonly sealer: Sealer;
  readonly claimEnds: ClaimEnds;
}

interface ReadRows extends Rows {
  readonly ringRows: readonly Ring[];
}

/** @throws SealError if the tokens are encrypted with another key */
export async function readRows(
  run: Run,
  { sealer, claimEnds }: RowReading,
  wanted: Wanted,
): Promise<ReadRows> {
  const keys = await run('readRings');
  const [own] = keys;
  if (!own) throw new StoreUnreadableError('it has lost the key of its fingerprints');
  const now = own['now'] as number;
  const ringRows = keys.map(({ id, key }) => ({
    id: id as number,
    key: Buffer.from(sealer.open(key as string, contexts.ring), 'base64'),
  }));
  const sets = (await run('readSets')).map(setOf);
  const pairs = await readPairs(run, sealer, sets);
  const attempts = await run('readAttempts', [wanted.attempt ?? '']);
  const { token } = wanted;
  const prints = ringRows.map(({ key }) => (token === undefined ? '' : fingerprintOf(key, token)));
  const [known] = token === undefined ? [] : await run('findFingerprints', [prints]);
  const fingerprints = wanted.rings === true ? await run('readFingerprints') : [];

  return {
    storeId: storeIdOf(createSecretKey(ringRows[0]!.key)),
    now,
    sets,
    pairs: ({ id }, from = 0) =>
      (pairs.get(id) ?? []).filter(({ generation }) => generation >= from),
    attempts: attempts.map(attemptOf),
    knownAs: () => known?.['generation'] as number | undefined,
    rings: () => ringsOf(ringRows, fingerprints),
    isLive: (claim) => !claim.ended && !claimEnds.isOver(claim, now),
    // A claim may have been lost with the server that had it.
    isExclusive: () => false,
    lock: null,
    ringRows,
  };
}

async function readPairs(run: Run, sealer: Sealer, sets: readonly SetRow[]) {
  const found = new Map<number, PairRow[]>();
  const byId = new Map(sets.map((set) => [set.id, set]));
  for (const row of await run('readPairs')) {
    const set = byId.get(row['set_id'] as number);
    if (!set) throw new StoreUnreadableError(DAMAGED);
    const ofSet = found.get(set.id) ?? [];
    found.set(set.id, ofSet);
    ofSet.push(pairOf(row, set, sealer));
  }
  return found;
}

/** Collects what a call writes, and writes it in that order. */
export function createRowWriter(
  run: Run,
  sealer: Sealer,
  { sets, ringRows }: ReadRows,
): { write: RowWriter; /** Whether anything was written. */ flush: () => Promise<boolean> } {
  const statements: [StatementName, readonly Value[]][] = [];
  const changed: { readonly rings: FingerprintRing[] } = { rings: [] };
  const put = (name: StatementName, ...values: Value[]) => void statements.push([name, values]);
  const known = new Map(sets.map((set) => [set.id, set]));

  const write: RowWriter = {
    putSet: (set) => {
      const before = known.get(set.id);
      const { id, name, baseUrl, head, lost, movedTo, withdrawn, claim } = set;
      const columns = [id, name, baseUrl, head, lost, movedTo, withdrawn, ...claimColumns(claim)];
      if (before) put('updateSet', ...columns, before.head, before.claim?.attempt ?? null);
      else put('insertSet', ...columns);
      known.set(id, set);
    },
    addPair: (set, row) => {
      const { generation, attempt, pair, savedAt, imported, wasHead } = row;
      const sealed = sealJson(pair, contexts.pair(set, generation), sealer);
      put('insertPair', set.id, generation, attempt, sealed, savedAt, imported, wasHead);
      const { id, key } = ringRows[0]!;
      put('insertFingerprint', id, fingerprintOf(key, pair.refreshToken), generation);
    },
    forgetPair: (set, row) => {
      if (!isForgotten(row)) put('sealPair', set.id, row.generation, row.attempt, '');
    },
    dropForgotten: (set, before) => put('dropPairs', set.id, before),
    addAttempt: ({ attempt, set, generation, at, outcome, replica }) => {
      put('insertAttempt', attempt, set, generation, at, outcome, replica);
      put('dropAttempts', KEPT_ATTEMPTS);
    },
    endAttempt: (attempt, outcome, latencyMs) =>
      put('endAttempt', attempt, outcome, Math.round(latencyMs)),
    addRings: (rings) => void changed.rings.push(...rings),
  };
  return { write, flush };

  async function flush(): Promise<boolean> {
    for (const { key, known: prints } of changed.rings) {
      const same = ringRows.find((ring) => ring.key.equals(key));
      const id = same?.id ?? (await insertRing(run, key, sealer));
      for (const { fingerprint, generation } of prints) {
        await run('insertFingerprint', [id, fingerprint, generation]);
      }
    }
    for (const [name, values] of statements) {
      const changedRows = await run(name, values);
      if (name === 'updateSet' && changedRows.length !== 1)
        throw new Error('the token store was changed meanwhile');
    }
    return statements.length > 0;
  }
}

/** The first ring is the store's own, and names it. */
export async function newRing(run: Run, sealer: Sealer): Promise<void> {
  await insertRing(run, randomBytes(32), sealer);
}

async function insertRing(run: Run, key: Uint8Array, sealer: Sealer): Promise<number> {
  const sealed = sealer.seal(Buffer.from(key).toString('base64'), contexts.ring);
  const [row] = await run('insertRing', [sealed]);
  return row!['id'] as number;
}

/** Encrypts everything with the newest key, unless an exchange is under way: its process may not have that key. */
export async function resealRows(run: Run, reading: RowReading): Promise<void> {
  const { sealer } = reading;
  const rows = await readRows(run, reading, {});
  if (rows.sets.some(({ claim }) => claim !== null && rows.isLive(claim))) return;
  for (const row of await run('readRings')) {
    const key = row['key'] as string;
    if (sealer.isCurrent(key)) continue;
    await run('sealRing', [
      row['id'] as number,
      sealer.seal(sealer.open(key, contexts.ring), contexts.ring),
    ]);
  }
  for (const row of await run('readPairs')) {
    const set = rows.sets.find(({ id }) => id === row['set_id'])!;
    const [sealed, generation] = [row['pair'] as string, row['generation'] as number];
    if (sealed === '' || sealer.isCurrent(sealed)) continue;
    const again = sealJson(pairOf(row, set, sealer).pair, contexts.pair(set, generation), sealer);
    await run('sealPair', [set.id, generation, row['attempt'] as string, again]);
  }
}

function pairOf(row: Row, set: SetRow, sealer: Sealer): PairRow {
  const { generation, attempt, pair, saved_at: savedAt, imported, was_head: wasHead } = row;
  const about = contexts.pair(set, generation as number);
  const opened = pair === '' ? FORGOTTEN : openJson(pair as string, about, sealer);
  return { generation, attempt, savedAt, imported, wasHead, pair: opened } as PairRow;
}

function setOf(row: Row): SetRow {
  const { id, name, base_url: baseUrl, head, lost, moved_to: movedTo, withdrawn } = row;
  return { id, name, baseUrl, head, lost, movedTo, withdrawn, claim: claimOf(row) } as SetRow;
}

function claimOf(row: Row): ClaimRow | null {
  const { claim: attempt, claim_at: at, claim_until: until, claim_ended: ended } = row;
  return attempt === null ? null : ({ attempt, at, until, ended, lock: null } as ClaimRow);
}

function claimColumns(claim: ClaimRow | null): Value[] {
  return claim ? [claim.attempt, claim.at, claim.until, claim.ended] : [null, null, null, false];
}

function attemptOf(row: Row): AttemptRow {
  const { at, generation, attempt, outcome, latency_ms: latencyMs, replica, set_name: set } = row;
  return { at, generation, attempt, outcome, latencyMs, replica, set } as AttemptRow;
}

function ringsOf(rings: readonly Ring[], rows: readonly Row[]): FingerprintRing[] {
  return rings.map(({ id, key }) => ({
    key,
    known: rows
      .filter((row) => row['ring_id'] === id)
      .map(({ fingerprint, generation }) => ({ fingerprint, generation })),
  })) as FingerprintRing[];
}
