import { randomUUID } from 'node:crypto';
import type { TokenPair } from '../token-set.ts';
import { StoreUnreadableError, type FingerprintRing, type HistoryEntry } from './token-store.ts';

/** One token set. The current set is the one with the highest id that is not withdrawn. */
export interface SetRow {
  readonly id: number;
  readonly name: string;
  readonly baseUrl: string;
  readonly head: number;
  readonly lost: boolean;
  readonly movedTo: string | null;
  readonly withdrawn: boolean;
  readonly claim: ClaimRow | null;
}

export interface ClaimRow {
  readonly attempt: string;
  /** By the store's clock, ms. */
  readonly at: number;
  /** Until when its exchange may be under way. */
  readonly until: number;
  /** The lock that shows whether its process lives; null if the store has no such lock. */
  readonly lock: string | null;
  /** Its exchange has ended without a clear answer. */
  readonly ended: boolean;
}

export interface PairRow {
  readonly generation: number;
  readonly attempt: string;
  /** Its tokens are empty once they are forgotten. */
  readonly pair: TokenPair;
  readonly savedAt: number;
  readonly imported: boolean;
  /** The set was, or is, at this very pair; not so for a second pair of its generation. */
  readonly wasHead: boolean;
}

export type AttemptRow = HistoryEntry & { readonly set: string };

/** What a transaction reads. */
export interface Rows {
  readonly storeId: string;
  /** The store's clock, ms. */
  readonly now: number;
  /** Newest first. */
  readonly sets: readonly SetRow[];
  /** In the order in which they were saved. */
  pairs(set: SetRow, fromGeneration?: number): readonly PairRow[];
  /** The attempts with one of `READ_OUTCOMES`, and the one that the call is about, in the order in which they began. */
  readonly attempts: readonly AttemptRow[];
  /** The generation that first had this refresh token. */
  knownAs(refreshToken: string): number | undefined;
  rings(): readonly FingerprintRing[];
  /** Whether the exchange of a claim may be under way. */
  isLive(claim: ClaimRow): boolean;
  /** Whether no other exchange can be under way, after the claim before this one was taken over. */
  isExclusive(before: ClaimRow | null): boolean;
  /** The lock of this process. */
  readonly lock: string | null;
}

/** What a transaction writes. */
export interface RowWriter {
  /** Inserts the row, or replaces the one with the same id. */
  putSet(set: SetRow): void;
  /** Also remembers the fingerprint of its refresh token. Replaces a row of the same pair, whose tokens are gone. */
  addPair(set: SetRow, pair: PairRow): void;
  /** Removes its tokens. That there was such a pair stays known. */
  forgetPair(set: SetRow, pair: PairRow): void;
  /** Removes the rows of forgotten pairs before a generation: so late, none of them is saved again. */
  dropForgotten(set: SetRow, before: number): void;
  addAttempt(attempt: Omit<AttemptRow, 'latencyMs'>): void;
  /** A clear outcome is final: only those of `OPEN_OUTCOMES` are replaced. */
  endAttempt(attempt: string, outcome: HistoryEntry['outcome'], latencyMs: number): void;
  addRings(rings: readonly FingerprintRing[]): void;
}

/** Entries of the audit trail. Those with one of `READ_OUTCOMES` are kept beyond this. */
export const KEPT_ATTEMPTS = 1_000;

type Outcome = HistoryEntry['outcome'];

/** What became of the refresh token is not known. */
export const OPEN_OUTCOMES: readonly Outcome[] = ['begun', 'uncertain', 'early-or-spent'];

/** What is known of a refresh token, and of the service, from attempts that ended long ago. */
export const READ_OUTCOMES: readonly Outcome[] = [...OPEN_OUTCOMES, 'early', 'spent'];

export function currentSet({ sets }: Pick<Rows, 'sets'>): SetRow | undefined {
  return sets.find(({ withdrawn }) => !withdrawn);
}

/** Undefined if its tokens were forgotten. */
export function findHead(rows: Pick<Rows, 'pairs'>, set: SetRow): PairRow | undefined {
  return rows
    .pairs(set, set.head)
    .find((row) => row.wasHead && row.generation === set.head && !isForgotten(row));
}

/**
 * @throws StoreUnreadableError if it is not there, though that of the current set is never forgotten; or if there is a
 *   later one: then the head was moved back, and its refresh token is spent
 */
export function headPair(rows: Pick<Rows, 'pairs'>, set: SetRow): PairRow {
  const found = findHead(rows, set);
  const isLater = (row: PairRow) => row.wasHead && row.generation > set.head;
  if (!found || rows.pairs(set, set.head).some(isLater)) throw new StoreUnreadableError(DAMAGED);
  return found;
}

export const DAMAGED =
  'the token store is damaged: what it says of the tokens does not agree with itself';

/** What is left of a pair whose tokens were removed, because they are spent. */
export const FORGOTTEN: TokenPair = {
  accessToken: '',
  refreshToken: '',
  expiresIn: 0,
  refreshTokenExpiresIn: 0,
  name: null,
};

/** Whether the tokens of a pair were removed. */
export function isForgotten({ pair }: PairRow): boolean {
  return pair.refreshToken === '';
}

export function newestGeneration(rows: Rows): number {
  return Math.max(
    0,
    ...rows.sets.flatMap((set) => [set.head, ...rows.pairs(set).map((row) => row.generation)]),
  );
}

/** @param except an attempt that is under way */
export function countUnanswered(rows: Rows, { name, head }: SetRow, except: string | null): number {
  return rows.attempts.filter(
    ({ set, generation, outcome, attempt }) =>
      set === name &&
      generation === head &&
      (outcome === 'begun' || outcome === 'uncertain') &&
      attempt !== except,
  ).length;
}

/**
 * Exchanges of a generation, by default the head, that were refused while its access token worked. Nothing is known since:
 * a later answer would have changed their outcome.
 */
export function earlyOrSpent(
  { attempts }: Pick<Rows, 'attempts'>,
  { name, head }: SetRow,
  generation = head,
): AttemptRow[] {
  return attempts.filter(
    (one) => one.set === name && one.generation === generation && one.outcome === 'early-or-spent',
  );
}

/** Whether the service of a set has refused an exchange as too early: a later one of that refresh token gave a pair. */
export function refusesEarly({ sets, attempts }: Rows, { baseUrl }: SetRow): boolean {
  return attempts.some(({ set: name, generation, outcome }) => {
    const set = sets.find((one) => one.name === name);
    if (set?.baseUrl !== baseUrl) return false;
    // A process of an older version moves the head and leaves the outcome as it is.
    return outcome === 'early' || (outcome === 'early-or-spent' && generation < set.head);
  });
}

/**
 * Whether the refusal of an exchange of the head leaves open if it was only too early. A process of an older version takes
 * any refusal for a loss, so the set may be marked as lost all the same.
 */
export function isRefusedEarly(rows: Rows, set: SetRow): boolean {
  if (earlyOrSpent(rows, set).length > 0) return true;
  const isSpent = rows.attempts.some(
    (one) => one.set === set.name && one.generation === set.head && one.outcome === 'spent',
  );
  return set.lost && !isSpent && refusesEarly(rows, set);
}

export function isLost(rows: Rows, set: SetRow): boolean {
  return set.lost && !isRefusedEarly(rows, set);
}

/** @param behind whether the set goes behind all others, so that it is not the current one */
export function newSet(
  { sets }: Rows,
  write: RowWriter,
  { name = randomUUID(), baseUrl, head }: { name?: string; baseUrl: string; head: number },
  behind = false,
): SetRow {
  const ids = sets.map(({ id }) => id);
  const id = behind ? Math.min(0, ...ids) - 1 : Math.max(0, ...ids) + 1;
  const set = {
    id,
    name,
    baseUrl,
    head,
    lost: false,
    movedTo: null,
    withdrawn: false,
    claim: null,
  };
  write.putSet(set);
  return set;
}
