import { mayHaveSuccessor, stateOf, waitsForExpiry } from './held-tokens.ts';
import { FATAL, troublesOf, type Trouble } from './token-health.ts';
import { CLAIM_LIFE_MS, type HistoryEntry, type StoredTokens } from './store/token-store.ts';
import { mayFollow, type WaitingPair } from './store/rescue.ts';

/** What `tokens status` reports. Contains no secrets. */
export interface TokenReport {
  readonly state: 'healthy' | 'attention' | 'lost' | 'moved' | 'missing';
  readonly store: string;
  readonly service: string | null;
  readonly name: string | null;
  readonly generation: number | null;
  /** First characters of the refresh token's fingerprint. */
  readonly fingerprint: string | null;
  readonly accessTokenSecondsLeft: number | null;
  readonly refreshTokenSecondsLeft: number | null;
  /** Whether the service exchanges no refresh token before its access token has expired, as far as is known. */
  readonly refusesEarly: boolean;
  /** ISO 8601; null when this set was not refreshed since its import. */
  readonly lastRotation: string | null;
  /** Exchanges of the refresh token in use that gave no pair. */
  readonly failures: number;
  readonly lastFailure: { readonly at: string; readonly outcome: string } | null;
  readonly exchangeUnderWay: boolean;
  /** The store that the set was moved to. */
  readonly movedTo: string | null;
  readonly troubles: readonly Trouble[];
  /** Rescue files that hold a pair which is not in the store, or that cannot be read. */
  readonly rescueFiles: readonly string[];
  /** The audit trail, newest first: imports, exchanges and moves, with the process and the outcome. */
  readonly history: readonly {
    /** ISO 8601. */
    readonly at: string;
    readonly generation: number;
    readonly attempt: string;
    readonly outcome: string;
    readonly latencyMs: number | null;
    readonly replica: string;
  }[];
}

const SHOWN = 20;

interface ReportFacts {
  store: string;
  stored: StoredTokens | null;
  /** Newest first. */
  history: readonly HistoryEntry[];
  waiting: readonly WaitingPair[];
  /** The store cannot be written. */
  unwritable: boolean;
}

const RENEWALS = new Set<HistoryEntry['outcome']>([
  'rotated',
  'same-refresh-token',
  'without-refresh-token',
  'without-access-token',
]);

const BEGINNINGS = new Set<HistoryEntry['outcome']>([...RENEWALS, 'imported', 'moved-in']);

const FAILURES = new Set<HistoryEntry['outcome']>([
  'begun',
  'uncertain',
  'unsent',
  'rate-limited',
  'refused',
  'early-or-spent',
  'early',
  'spent',
  'invalid-grant',
]);

export function tokenReport(facts: ReportFacts): TokenReport {
  const { store, stored, history, waiting } = facts;
  if (!stored) return missingReport(facts);
  const { pair, savedAt, age, claim, generation } = stored;
  const left = (seconds: number) => seconds * 1000 - age;
  const refresh = history.find(
    (one) => RENEWALS.has(one.outcome) && one.generation === generation - 1,
  );
  const state = stateOf(stored);
  const ours = waiting.filter(({ isOurs }) => isOurs);
  const head = { ...stored, mayHaveSuccessor: mayHaveSuccessor({ state }) };
  const blocking = stored.lost
    ? []
    : ours.filter((file) => file.why !== undefined && mayFollow(file, head));
  const isHeldLong = claim?.live === true && (claim.age > CLAIM_LIFE_MS || claim.isDatedAhead);
  const troubles = troublesOf({
    state: state.kind,
    unsaved: ours.length > blocking.length,
    blocked: facts.unwritable || blocking.length > 0 || isHeldLong,
    age,
    accessLeft: left(pair.expiresIn),
    refreshLeft: left(pair.refreshTokenExpiresIn),
    refreshLife: pair.refreshTokenExpiresIn * 1000,
    notRenewed: !stored.imported && refresh !== undefined && refresh.outcome !== 'rotated',
    imported: stored.imported,
    hasSecondPair: stored.surplus > 0,
    waitsForExpiry: waitsForExpiry(stored),
  });
  const since = history.slice(
    0,
    indexOrEnd(history, ({ outcome }) => BEGINNINGS.has(outcome)),
  );
  const isUnderWay = ({ attempt }: HistoryEntry) =>
    claim?.live === true && attempt === claim.attempt;
  // Failures of an import that was withdrawn have another generation.
  const failed = since.filter(
    (one) => FAILURES.has(one.outcome) && one.generation === generation && !isUnderWay(one),
  );
  const [last] = failed;
  return {
    state: reportStateOf(troubles),
    store,
    service: new URL(stored.baseUrl).host,
    name: pair.name,
    generation,
    fingerprint: stored.fingerprint,
    accessTokenSecondsLeft: secondsOf(left(pair.expiresIn)),
    refreshTokenSecondsLeft: stored.lost ? 0 : secondsOf(left(pair.refreshTokenExpiresIn)),
    refusesEarly: stored.refusesEarly,
    lastRotation: stored.imported ? null : iso(savedAt),
    failures: failed.length,
    lastFailure: last ? { at: iso(last.at), outcome: last.outcome } : null,
    exchangeUnderWay: claim?.live === true,
    movedTo: stored.movedTo,
    troubles,
    rescueFiles: ours.map(({ path }) => path),
    history: shown(history),
  };
}

/** A set whose pair waits in a rescue file is not missing: the next start, or `tokens recover`, saves it. */
function missingReport({ store, waiting, history }: ReportFacts): TokenReport {
  const isRescued = waiting.some(({ isOurs }) => isOurs);
  return {
    state: isRescued ? 'attention' : 'missing',
    store,
    service: null,
    name: null,
    generation: null,
    fingerprint: null,
    accessTokenSecondsLeft: null,
    refreshTokenSecondsLeft: null,
    refusesEarly: false,
    lastRotation: null,
    failures: 0,
    lastFailure: null,
    exchangeUnderWay: false,
    movedTo: null,
    troubles: isRescued ? ['unsaved'] : ['missing'],
    // Those of another store too: TOKEN_STORE may name the wrong one.
    rescueFiles: waiting.map(({ path }) => path),
    history: shown(history),
  };
}

function shown(history: readonly HistoryEntry[]): TokenReport['history'] {
  return history.slice(0, SHOWN).map((entry) => ({ ...entry, at: iso(entry.at) }));
}

function reportStateOf(troubles: readonly Trouble[]): TokenReport['state'] {
  if (troubles.includes('moved')) return 'moved';
  if (troubles.some((trouble) => FATAL.has(trouble))) return 'lost';
  return troubles.length > 0 ? 'attention' : 'healthy';
}

function indexOrEnd<T>(list: readonly T[], test: (one: T) => boolean): number {
  const index = list.findIndex(test);
  return index < 0 ? list.length : index;
}

function secondsOf(ms: number): number {
  return Math.max(0, Math.floor(ms / 1000));
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
