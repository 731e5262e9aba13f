import { createHmac } from 'node:crypto';
import type { TokenPair } from '../token-set.ts';
import { contexts, openJson, type Sealer } from './seal.ts';
import {
  currentSet,
  DAMAGED,
  FINGERPRINT_DIGITS,
  headPair,
  type Attempt,
  type HeldClaim,
  type KeptPair,
  type TokenDocument,
  type TokenSet,
} from './token-document.ts';
import { StoreUnreadableError } from './token-store.ts';

type Row = Record<string, unknown>;

/** The rows of a store of layout 1, whose content was spread over five tables. Each table is sorted by id. */
interface FirstLayout {
  readonly rings: readonly Row[];
  readonly sets: readonly Row[];
  readonly pairs: readonly Row[];
  readonly attempts: readonly Row[];
  readonly fingerprints: readonly Row[];
}

/** For a StoreUnavailableError: the store is used once that exchange has ended. */
export const OLD_PROCESS =
  'a process of an older version is refreshing the tokens, or was stopped while it did: the store is used when that has ended';

/** @throws StoreUnreadableError or SealError if anything is damaged or cannot be decrypted */
export function documentOf(tables: FirstLayout, sealer: Sealer): TokenDocument {
  const rings = tables.rings.map(({ id, key }) => {
    const known = tables.fingerprints
      .filter((row) => row['ring_id'] === id)
      .map((row) => [
        String(row['fingerprint']).slice(0, FINGERPRINT_DIGITS),
        row['generation'] as number,
      ]);
    return {
      key: sealer.open(key as string, contexts.ring),
      known: Object.fromEntries(known) as Record<string, number>,
    };
  });
  const [ring] = rings;
  if (!ring) throw new StoreUnreadableError('it has lost the key of its fingerprints');
  const expectSum = (row: Row, values: readonly unknown[]) => {
    if (row['sum'] === undefined) return;
    const sum = createHmac('sha256', Buffer.from(ring.key, 'base64'));
    if (row['sum'] !== sum.update(JSON.stringify(values)).digest('hex')) throw damaged();
  };
  const sets = tables.sets.map((row) => {
    const set = setOf(row);
    const { name, baseUrl, head, lost, movedTo, withdrawn, claim } = set;
    expectSum(row, ['set', row['id'], name, baseUrl, head, lost, movedTo, withdrawn, claim]);
    const rows = tables.pairs.filter((pair) => pair['set_id'] === row['id']);
    set.pairs = rows.map((pairRow) => {
      const kept = pairOf(pairRow, set, sealer);
      const { generation, attempt, savedAt, imported, wasHead } = kept;
      const pair = kept.pair ?? FORGOTTEN;
      expectSum(pairRow, ['pair', name, generation, attempt, savedAt, imported, wasHead, pair]);
      return kept;
    });
    const isBack = set.pairs.some((pair) => pair.wasHead && pair.generation > head);
    if (isBack) throw damaged();
    return set;
  });
  if (tables.pairs.length > sets.flatMap(({ pairs }) => pairs).length) throw damaged();
  const attempts = tables.attempts.map(attemptOf);
  const document: TokenDocument = { rings, sets: sets.toReversed(), attempts };
  const current = currentSet(document);
  if (current) headPair(current);
  else if (sets.length > 0) throw damaged();
  return document;
}

function damaged(): Error {
  return new StoreUnreadableError(DAMAGED);
}

/** What remained of a pair whose tokens were removed. */
const FORGOTTEN: TokenPair = {
  accessToken: '',
  refreshToken: '',
  expiresIn: 0,
  refreshTokenExpiresIn: 0,
  name: null,
};

function setOf(row: Row): TokenSet {
  const { name, base_url: baseUrl, head, moved_to: movedTo } = row;
  const [lost, withdrawn] = [Boolean(row['lost']), Boolean(row['withdrawn'])];
  return { name, baseUrl, head, lost, movedTo, withdrawn, claim: claimOf(row), pairs: [] } as never;
}

/** SQLite kept it as JSON, PostgreSQL in four columns. */
function claimOf(row: Row): HeldClaim | null {
  const { claim, claim_at: at, claim_until: until, claim_ended: ended } = row;
  if (claim === null) return null;
  if (at !== undefined) return { attempt: claim, at, until, lock: null, ended } as HeldClaim;
  try {
    return JSON.parse(claim as string) as HeldClaim;
  } catch {
    throw damaged();
  }
}

function pairOf(row: Row, { name, baseUrl }: TokenSet, sealer: Sealer): KeptPair {
  const { generation, attempt, pair: sealed, saved_at: savedAt } = row;
  const about = contexts.pair({ name, baseUrl }, generation as number);
  const pair = sealed === '' ? null : openJson(sealed as string, about, sealer);
  const [imported, wasHead] = [Boolean(row['imported']), Boolean(row['was_head'])];
  return { generation, attempt, pair, savedAt, imported, wasHead } as KeptPair;
}

function attemptOf(row: Row): Attempt {
  const { at, generation, attempt, outcome, latency_ms: latencyMs, replica, set_name: set } = row;
  return { at, generation, attempt, outcome, latencyMs, replica, set } as Attempt;
}
