import { createHash, createHmac, randomBytes, randomUUID } from 'node:crypto';
import type { TokenPair } from '../token-set.ts';
import { contexts, type Sealer } from './seal.ts';
import { StoreUnreadableError, type FingerprintRing, type HistoryEntry } from './token-store.ts';

/**
 * Everything that a token store holds, as a plain value. A store keeps it as one sealed text: each call reads it, and a
 * call that changes it writes all of it, in one transaction.
 */
export interface TokenDocument {
  /** Fingerprints of all refresh tokens. The first ring is the store's own, the others came with sets that were moved. */
  rings: Ring[];
  /** Newest first. The current set is the first one that is not withdrawn. */
  sets: TokenSet[];
  /** Oldest first. */
  attempts: Attempt[];
}

interface Ring {
  /** 32 bytes in base64. */
  readonly key: string;
  /** The generation that first had a refresh token, by its fingerprint. */
  readonly known: Record<string, number>;
}

export interface TokenSet {
  readonly name: string;
  readonly baseUrl: string;
  /** The generation in use. */
  head: number;
  lost: boolean;
  movedTo: string | null;
  withdrawn: boolean;
  claim: HeldClaim | null;
  /** In the order in which they were saved. */
  pairs: KeptPair[];
}

export interface HeldClaim {
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

export interface KeptPair {
  readonly generation: number;
  readonly attempt: string;
  /** Null once its tokens are forgotten. */
  readonly pair: TokenPair | null;
  readonly savedAt: number;
  readonly imported: boolean;
  /** The set was, or is, at this very pair; not so for a second pair of its generation. */
  readonly wasHead: boolean;
}

export type Attempt = HistoryEntry & { readonly set: string };

/** What a call needs to know besides the document. */
export interface Present {
  /** The store's clock, ms. */
  readonly now: number;
  /** The lock of this process; null if the store has no such lock. */
  readonly lock: string | null;
  /** Whether the exchange of a claim may be under way. */
  isLive(claim: HeldClaim): boolean;
  /** Whether no other exchange can be under way, after the claim before this one was taken over. */
  isExclusive(before: HeldClaim | null): boolean;
}

export function newDocument(): TokenDocument {
  return {
    rings: [{ key: randomBytes(32).toString('base64'), known: {} }],
    sets: [],
    attempts: [],
  };
}

const SUM_LENGTH = 32;

export function sealDocument(document: TokenDocument, sealer: Sealer): string {
  const text = JSON.stringify(document);
  return sealer.seal(sumOf(text) + text, contexts.store);
}

/** @throws SealError, or StoreUnreadableError if it was altered */
export function openDocument(sealed: string, sealer: Sealer): TokenDocument {
  const opened = sealer.open(sealed, contexts.store);
  const text = opened.slice(SUM_LENGTH);
  if (sumOf(text) !== opened.slice(0, SUM_LENGTH)) throw new StoreUnreadableError(DAMAGED);
  return JSON.parse(text) as TokenDocument;
}

export const DAMAGED = 'the token store is damaged: its content was altered';

/** Without a key, nothing else shows that the text was altered. */
function sumOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, SUM_LENGTH);
}

/** Names a store: copies of it have the same name. */
export function storeIdIn({ rings }: TokenDocument): string {
  return fingerprintOf(rings[0]!, 'store');
}

/** Hexadecimal digits of a fingerprint. Two of a million refresh tokens are alike once in forty million stores. */
export const FINGERPRINT_DIGITS = 16;

/** Identifies a refresh token without storing it. */
function fingerprintOf({ key }: Ring, refreshToken: string): string {
  const hmac = createHmac('sha256', Buffer.from(key, 'base64')).update(refreshToken);
  return hmac.digest('hex').slice(0, FINGERPRINT_DIGITS);
}

export function currentSet({ sets }: TokenDocument): TokenSet | undefined {
  return sets.find(({ withdrawn }) => !withdrawn);
}

/** Undefined if its tokens were forgotten. */
export function findHead({ pairs, head }: TokenSet): (KeptPair & { pair: TokenPair }) | undefined {
  return pairs.find(
    (kept): kept is KeptPair & { pair: TokenPair } =>
      kept.wasHead && kept.generation === head && kept.pair !== null,
  );
}

/** @throws StoreUnreadableError if it is not there, though that of the current set is never forgotten */
export function headPair(set: TokenSet): KeptPair & { pair: TokenPair } {
  const head = findHead(set);
  if (!head) throw new StoreUnreadableError(DAMAGED);
  return head;
}

export function newestGeneration({ sets }: TokenDocument): number {
  return Math.max(
    0,
    ...sets.flatMap(({ head, pairs }) => [head, ...pairs.map(({ generation }) => generation)]),
  );
}

/** @param behind whether the set goes behind all others, so that it is not the current one */
export function newSet(
  { sets }: TokenDocument,
  { name = randomUUID(), baseUrl, head }: { name?: string; baseUrl: string; head: number },
  behind = false,
): TokenSet {
  const state = { lost: false, movedTo: null, withdrawn: false, claim: null, pairs: [] };
  const set: TokenSet = { name, baseUrl, head, ...state };
  if (behind) sets.push(set);
  else sets.unshift(set);
  return set;
}

/** Also remembers the fingerprint of its refresh token. Replaces the same pair, whose tokens are gone. */
export function addPair(
  { rings: [ring] }: TokenDocument,
  set: TokenSet,
  added: KeptPair & { pair: TokenPair },
): void {
  const at = set.pairs.findIndex(isPair(added.generation, added.attempt));
  if (at < 0) set.pairs.push(added);
  else set.pairs[at] = added;
  ring!.known[fingerprintOf(ring!, added.pair.refreshToken)] ??= added.generation;
}

export function isPair(generation: number, attempt: string) {
  return (kept: KeptPair) => kept.generation === generation && kept.attempt === attempt;
}

/** The generation that first had this refresh token. */
export function knownAs({ rings }: TokenDocument, refreshToken: string): number | undefined {
  return rings
    .map((ring) => ring.known[fingerprintOf(ring, refreshToken)])
    .find((generation) => generation !== undefined);
}

export function fingerprintsIn({ rings }: TokenDocument): FingerprintRing[] {
  return rings.map(({ key, known }) => ({
    key: Buffer.from(key, 'base64'),
    known: Object.entries(known).map(([fingerprint, generation]) => ({ fingerprint, generation })),
  }));
}

export function addRings(document: TokenDocument, added: readonly FingerprintRing[]): void {
  for (const { key: bytes, known } of added) {
    const key = Buffer.from(bytes).toString('base64');
    const same = document.rings.find((ring) => ring.key === key);
    const ring = same ?? { key, known: {} };
    if (!same) document.rings.push(ring);
    for (const { fingerprint, generation } of known) ring.known[fingerprint] ??= generation;
  }
}

type Outcome = HistoryEntry['outcome'];

/** What became of the refresh token is not known. */
const OPEN_OUTCOMES: readonly Outcome[] = ['begun', 'uncertain', 'early-or-spent'];
/** Entries of the audit trail. What is known of a refresh token in use, and of the service, is kept beyond this. */
const KEPT_ATTEMPTS = 1_000;

export function addAttempt(document: TokenDocument, added: Omit<Attempt, 'latencyMs'>): void {
  const { sets } = document;
  const attempts = [...document.attempts, { ...added, latencyMs: null }];
  const isNeeded = ({ set, generation, outcome }: Attempt) => {
    // They show that the service refuses early. Later entries do not change that.
    if (outcome === 'early' || outcome === 'early-or-spent') return true;
    const isOfHead = sets.some(({ name, head }) => name === set && head === generation);
    return isOfHead && (outcome === 'spent' || OPEN_OUTCOMES.includes(outcome));
  };
  document.attempts = attempts.filter(
    (entry, index) => index >= attempts.length - KEPT_ATTEMPTS || isNeeded(entry),
  );
}

/** A clear outcome is final: only those of `OPEN_OUTCOMES` are replaced. */
export function endAttempt(
  document: TokenDocument,
  attempt: string,
  outcome: Outcome,
  latencyMs: number,
): void {
  document.attempts = document.attempts.map((entry) =>
    entry.attempt === attempt && OPEN_OUTCOMES.includes(entry.outcome)
      ? { ...entry, outcome, latencyMs: Math.round(latencyMs) }
      : entry,
  );
}

/** @param except an attempt that is under way */
export function countUnanswered(
  { attempts }: TokenDocument,
  { name, head }: TokenSet,
  except: string | null,
): number {
  return attempts.filter(
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
  { attempts }: TokenDocument,
  { name, head }: TokenSet,
  generation = head,
): Attempt[] {
  return attempts.filter(
    (entry) =>
      entry.set === name && entry.generation === generation && entry.outcome === 'early-or-spent',
  );
}

/** Whether the service of a set has refused an exchange as too early: a later one of that refresh token gave a pair. */
export function refusesEarly({ sets, attempts }: TokenDocument, { baseUrl }: TokenSet): boolean {
  return attempts.some(({ set: name, generation, outcome }) => {
    const set = sets.find((candidate) => candidate.name === name);
    if (set?.baseUrl !== baseUrl) return false;
    // A process of an older version moved the head and left the outcome as it was.
    return outcome === 'early' || (outcome === 'early-or-spent' && generation < set.head);
  });
}

/**
 * Whether the refusal of an exchange of the head leaves open if it was only too early. A process of an older version took
 * any refusal for a loss, so the set may be marked as lost all the same.
 */
export function isRefusedEarly(document: TokenDocument, set: TokenSet): boolean {
  if (earlyOrSpent(document, set).length > 0) return true;
  const isSpent = document.attempts.some(
    (entry) => entry.set === set.name && entry.generation === set.head && entry.outcome === 'spent',
  );
  return set.lost && !isSpent && refusesEarly(document, set);
}

export function isLost(document: TokenDocument, set: TokenSet): boolean {
  return set.lost && !isRefusedEarly(document, set);
}
