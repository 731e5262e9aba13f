import { createHash, createHmac, randomBytes, randomUUID } from 'node:crypto';
import type { TokenPair } from '../token-set.ts';
import { contexts, type Sealer } from './seal.ts';
import {
  CLAIM_LIFE_MS,
  StoreUnreadableError,
  type Claim,
  type Ending,
  type FingerprintRing,
  type HistoryEntry,
  type ImportOutcome,
  type MovedSet,
  type NewClaim,
  type NewPair,
  type NewSet,
  type StoredTokens,
} from './token-store.ts';

/**
 * Everything that a token store holds, as a plain value. A store keeps it as one sealed text: each call reads it, and a
 * call that changes it writes all of it, in one transaction.
 */
export interface TokenDocument {
  /** Fingerprints of all refresh tokens. The first ring is the store's own, the others came with sets that were moved. */
  rings: FingerprintRing[];
  /** Newest first. The current set is the first one that is not withdrawn. */
  sets: TokenSet[];
  /** Oldest first. */
  attempts: Attempt[];
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
  /** Whether this pair is, or was, the head of its set. Not so for a second pair of its generation. */
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

/*
 * The rules: what each call of `TokenStore` does to the document, whichever database keeps it. Each function is called
 * within one transaction, and transactions do not overlap. Its changes are written if it returns.
 */

export function readStored(document: TokenDocument, present: Present): StoredTokens | null {
  const set = currentSet(document);
  if (!set) return null;
  const { name, baseUrl, head: generation, movedTo, claim } = set;
  const { pair, attempt, savedAt, imported } = headPair(set);
  const { now } = present;
  const live = claim !== null && present.isLive(claim);
  return {
    storeId: storeIdIn(document),
    set: name,
    baseUrl,
    generation,
    pair,
    attempt,
    fingerprint: shownFingerprint(pair.refreshToken),
    savedAt,
    age: now - savedAt,
    lost: isLost(document, set),
    movedTo,
    imported,
    claim: claim && {
      attempt: claim.attempt,
      age: now - claim.at,
      live,
      isDatedAhead: isDatedAhead(claim, now),
    },
    unanswered: countUnanswered(document, set, live ? claim.attempt : null),
    surplus: set.pairs.filter((kept) => kept.generation === generation).length - 1,
    refusedEarly: isRefusedEarly(document, set),
    refusesEarly: refusesEarly(document, set),
  };
}

/** For people. Made without a key, so that a token looks the same in all stores; too short to reveal it. */
function shownFingerprint(refreshToken: string): string {
  return createHash('sha256')
    .update('refresh token\0')
    .update(refreshToken)
    .digest('hex')
    .slice(0, 8);
}

export function importSet(
  document: TokenDocument,
  present: Present,
  { baseUrl, pair, replica, after }: NewSet,
): ImportOutcome {
  const head = currentSet(document);
  const known = knownAs(document, pair.refreshToken);
  if (known !== undefined) {
    const current = head !== undefined && headPair(head).pair.refreshToken === pair.refreshToken;
    return { kind: 'known', generation: known, current };
  }
  if (head?.name !== after?.set || head?.head !== after?.generation) return { kind: 'overtaken' };
  const generation = newestGeneration(document) + 1;
  const set = newSet(document, { baseUrl, head: generation });
  const { now } = present;
  const times = { savedAt: now, imported: true, wasHead: true };
  addPair(document, set, { generation, attempt: 'import', pair, ...times });
  const entry = { set: set.name, attempt: set.name, generation, at: now, replica };
  addAttempt(document, { ...entry, outcome: 'imported' });
  return { kind: 'imported', stored: readStored(document, present)! };
}

export function withdrawSet(document: TokenDocument, name: string): boolean {
  const [current, before] = document.sets.filter(({ withdrawn }) => !withdrawn);
  if (current?.name !== name || current.claim !== null) return false;
  if (!before || isLost(document, before) || before.movedTo !== null) return false;
  if (!findHead(before)) return false;
  current.withdrawn = true;
  return true;
}

export function claimSet(
  document: TokenDocument,
  present: Present,
  { set: name, generation, attempt, over, knowsRefusal, lifeMs, replica }: NewClaim,
): Claim | undefined {
  const set = currentSet(document);
  if (set?.name !== name || set.head !== generation || set.movedTo !== null) return undefined;
  const before = set.claim;
  if (document.attempts.some((entry) => entry.attempt === attempt)) {
    // Repeated, because the outcome of the first call was unknown.
    const isOurs = before?.attempt === attempt && !before.ended;
    return isOurs ? { exclusive: present.isExclusive(before) } : undefined;
  }
  if (over !== undefined && over !== (before?.attempt ?? null)) return undefined;
  if (before && present.isLive(before)) return undefined;
  if (knowsRefusal === false && isRefusedEarly(document, set)) return undefined;
  headPair(set);
  const at = present.now;
  set.claim = { attempt, at, until: at + lifeMs, lock: present.lock, ended: false };
  addAttempt(document, { set: name, attempt, generation, at, outcome: 'begun', replica });
  return { exclusive: present.isExclusive(before) };
}

export function endAttempt(
  document: TokenDocument,
  attempt: string,
  { outcome, latencyMs }: Ending,
): void {
  const begun = document.attempts.find((entry) => entry.attempt === attempt);
  const set = document.sets.find(({ name }) => name === begun?.set);
  if (!begun || !set) return;
  const isSpent = outcome === 'invalid-grant' && set.head === begun.generation;
  const refused = isSpent ? earlyOrSpent(document, set) : [];
  // Distinguishes it from a loss recorded by an older version, which may have been only an early refusal.
  const isProved = isSpent && (refused.length > 0 || refusesEarly(document, set));
  if (isSpent) set.lost = true;
  if (set.claim?.attempt === attempt) {
    set.claim = outcome === 'uncertain' ? { ...set.claim, ended: true } : null;
  }
  endEntry(document, attempt, isProved ? 'spent' : outcome, latencyMs);
  for (const entry of refused) endEntry(document, entry.attempt, 'spent', entry.latencyMs ?? 0);
}

/** @param wallNow the wall clock of this machine, ms; `saved.at` is of the same clock */
export function savePair(
  document: TokenDocument,
  { now }: Present,
  saved: NewPair,
  wallNow: number,
): boolean {
  const { generation, attempt, pair, outcome, at, latencyMs } = saved;
  const set = homeSet(document, saved);
  const next = generation + 1;
  const known = set.pairs.find(isPair(next, attempt));
  if (known) {
    if (known.wasHead && set.head < next) advance(document, set, next);
    return known.wasHead;
  }
  const wasHead = set.head <= generation;
  // Not earlier than its exchange, nor than the pair before it, even if the wall clock of this machine has jumped, or the
  // store's clock is behind now: a pair that looks past its end is never refreshed. Times in the future are ignored,
  // because they were written while the store's clock was ahead.
  const begun = document.attempts.find((entry) => entry.attempt === attempt);
  const savedAt = Math.max(
    begun ? Math.min(begun.at, now) : 0,
    Math.min(newestSavedAt(set, generation), wallNow),
    now - Math.max(0, wallNow - at),
  );
  addPair(document, set, { generation: next, attempt, pair, savedAt, imported: false, wasHead });
  resolveRefusals(document, set, saved);
  endEntry(document, attempt, outcome, latencyMs);
  if (wasHead) advance(document, set, next);
  if (set.claim?.attempt === attempt) set.claim = null;
  forgetSpent(document, set, attempt);
  return wasHead;
}

/** A refusal was too early if a later exchange gave the pair. If an earlier one did, the token had been spent. */
function resolveRefusals(
  document: TokenDocument,
  set: TokenSet,
  { generation, attempt }: NewPair,
): void {
  const { attempts } = document;
  const begun = attempts.findIndex((entry) => entry.attempt === attempt);
  for (const entry of earlyOrSpent(document, set, generation)) {
    const isEarly = attempts.indexOf(entry) < begun;
    endEntry(document, entry.attempt, isEarly ? 'early' : 'spent', entry.latencyMs ?? 0);
  }
}

/** Moves the head forward. Keeps a claim of the new generation. */
function advance({ attempts }: TokenDocument, set: TokenSet, head: number): void {
  const claimed = attempts.find(({ attempt }) => attempt === set.claim?.attempt)?.generation;
  set.head = head;
  set.lost = false;
  if (claimed !== head) set.claim = null;
}

/** When the newest pair up to this generation was saved; 0 if that is unknown. */
function newestSavedAt({ pairs, head }: TokenSet, generation: number): number {
  // A failover may have lost the pair of the generation itself.
  const from = Math.min(generation, head);
  const older = pairs.filter((kept) => kept.generation >= from && kept.generation <= generation);
  return Math.max(0, ...older.map(({ savedAt }) => savedAt));
}

export function holdsPair(
  document: TokenDocument,
  { set: name, generation, attempt, pair }: NewPair,
): boolean {
  const next = generation + 1;
  const set = document.sets.find((candidate) => candidate.name === name);
  if (set?.pairs.some(isPair(next, attempt))) return true;
  // It was dropped long ago, or its set was moved here and has another name.
  const isBehind = set === undefined || next < set.head;
  return isBehind && knownAs(document, pair.refreshToken) !== undefined;
}

export function moveOut(
  document: TokenDocument,
  present: Present,
  { to, replica }: { to: string; replica: string },
): MovedSet {
  const set = currentSet(document);
  if (!set) throw new Error('There is no token set to move.');
  const { name, baseUrl, head: generation, movedTo, claim } = set;
  const { now } = present;
  if (movedTo !== null && movedTo !== to) {
    throw new Error(`The token set was moved to ${movedTo} before. Nothing was changed.`);
  }
  if (movedTo === null) {
    if (isLost(document, set)) throw new Error(NOTHING_TO_MOVE);
    if (claim && present.isLive(claim)) throw new Error(UNDER_WAY);
    if (claim || countUnanswered(document, set, null) > 0) throw new Error(UNCERTAIN);
    set.movedTo = to;
    const entry = { set: name, attempt: randomUUID(), generation, at: now, replica };
    addAttempt(document, { ...entry, outcome: 'moved-out' });
  }
  const { pair, savedAt, imported } = headPair(set);
  const early = {
    refusedEarly: isRefusedEarly(document, set),
    refusesEarly: refusesEarly(document, set),
  };
  const { rings: fingerprints } = document;
  return { baseUrl, generation, pair, age: now - savedAt, imported, ...early, fingerprints };
}

export const UNDER_WAY =
  'An exchange of the refresh token is under way. Nothing was moved; try again when it has ended.';
const UNCERTAIN =
  'An exchange of the refresh token is uncertain. Run `tokens recover` first; nothing was moved.';
const NOTHING_TO_MOVE =
  'The token set is lost, so there is nothing to move. Import a new one there.';

export function moveBack(document: TokenDocument, to: string): void {
  const set = currentSet(document);
  if (set?.movedTo === to) set.movedTo = null;
}

/** @param place the description of the store */
export function moveIn(
  document: TokenDocument,
  { now: at }: Present,
  moved: MovedSet & { replica: string },
  place: string,
): void {
  const { baseUrl, generation: theirs, pair, age, imported, fingerprints, replica } = moved;
  const newest = newestGeneration(document);
  // Each move increases the generation, so a known token without a higher one was taken over before, and may have been
  // exchanged or moved on since. If it were refused or taken over again, it would have two owners.
  if (theirs <= newest && knownAs(document, pair.refreshToken) !== undefined) return;
  const head = currentSet(document);
  if (head && !isLost(document, head) && head.movedTo === null) {
    throw new Error(
      `The store (${place}) holds a token set that is in use (generation ${head.head}). Nothing was moved; choose another store.`,
    );
  }
  const generation = Math.max(theirs, newest) + 1;
  const set = newSet(document, { baseUrl, head: generation });
  addRings(document, fingerprints);
  const times = { savedAt: at - age, imported, wasHead: true };
  addPair(document, set, { generation, attempt: 'moved', pair, ...times });
  const entry = () => ({ set: set.name, attempt: randomUUID(), generation, at, replica });
  if (moved.refusesEarly) addAttempt(document, { ...entry(), outcome: 'early' });
  if (moved.refusedEarly) addAttempt(document, { ...entry(), outcome: 'early-or-spent' });
  addAttempt(document, { ...entry(), outcome: 'moved-in' });
}

/** The set of a pair. A set that the store does not know is taken in. */
function homeSet(document: TokenDocument, { set: name, generation, home }: NewPair): TokenSet {
  const known = document.sets.find((set) => set.name === name);
  if (known) return known;
  if (!home) throw new Error(`the token store does not know the set ${name}`);
  const { baseUrl } = home;
  const service = currentSet(document)?.baseUrl ?? baseUrl;
  if (service !== baseUrl) throw new Error(`the token store belongs to ${service}`);
  const isCopy = home.storeId === storeIdIn(document);
  const isNewest = generation + 1 > newestGeneration(document);
  return newSet(document, { name, baseUrl, head: generation }, !(isCopy && isNewest));
}

const PAIRS_KEPT = 100;

/**
 * Removes spent tokens, except the pair before the head, which another process may still use, and the last set that was
 * replaced, possibly by mistake. Entries without tokens stay for a while, so that a pair is not saved again.
 */
function forgetSpent(document: TokenDocument, saved: TokenSet, attempt: string): void {
  const keptSets = [saved, ...document.sets.filter(({ withdrawn }) => !withdrawn).slice(0, 2)];
  for (const set of document.sets) {
    const from = keptSets.includes(set) ? set.head - 1 : Number.POSITIVE_INFINITY;
    set.pairs = set.pairs
      .map((kept) =>
        kept.generation < from && kept.attempt !== attempt ? { ...kept, pair: null } : kept,
      )
      .filter(({ pair, generation }) => pair !== null || generation >= set.head - PAIRS_KEPT);
  }
}

/** The audit trail, newest first. */
export function historyIn({ attempts }: TokenDocument, limit: number): HistoryEntry[] {
  const newest = attempts.slice(-limit).toReversed();
  return newest.map(({ set: _set, ...entry }) => entry);
}

/**
 * Decides whether claims have ended. The store's clock alone is not enough: if it was ahead at the claim, or is set back
 * later, the end of the claim is so far in the future that no process could exchange the refresh token again. So a claim
 * also ends when its length has passed since this process first saw it, by a clock that never jumps. The holder measures
 * from before the claim, by such a clock too, so it sends nothing after that.
 *
 * @param elapsed time that never jumps, ms
 * @returns whether a claim has ended; its `now` is the store's clock, ms
 */
export function createClaimEnds(elapsed: () => number) {
  const seenAt = new Map<string, number>();
  return (claim: HeldClaim, now: number): boolean =>
    now >= claim.until || elapsed() - firstSeen(claim) >= lengthOf(claim);

  function firstSeen({ attempt }: HeldClaim): number {
    const known = seenAt.get(attempt);
    if (known !== undefined) return known;
    if (seenAt.size >= REMEMBERED) seenAt.delete(seenAt.keys().next().value!);
    const at = elapsed();
    seenAt.set(attempt, at);
    return at;
  }
}

/** More than the claims that a store has at the same time. */
const REMEMBERED = 16;

function lengthOf({ at, until }: HeldClaim): number {
  return Math.min(until - at, CLAIM_LIFE_MS);
}

const TOLERANCE_MS = 60_000;

/** Whether a claim ends later than any claim can: the store's clock was set back since. */
function isDatedAhead({ ended, until }: HeldClaim, now: number): boolean {
  return !ended && until - now > CLAIM_LIFE_MS + TOLERANCE_MS;
}

/** Identifies a store: copies of it have the same id. */
function storeIdIn({ rings }: TokenDocument): string {
  return fingerprintOf(rings[0]!, 'store');
}

/** Hexadecimal digits of a fingerprint. Two of a million refresh tokens share one in one of forty million stores. */
export const FINGERPRINT_DIGITS = 16;

/** Identifies a refresh token without storing it. */
function fingerprintOf({ key }: FingerprintRing, refreshToken: string): string {
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

/** @throws StoreUnreadableError if it is missing, though that of the current set is never forgotten */
export function headPair(set: TokenSet): KeptPair & { pair: TokenPair } {
  const head = findHead(set);
  if (!head) throw new StoreUnreadableError(DAMAGED);
  return head;
}

function newestGeneration({ sets }: TokenDocument): number {
  return Math.max(
    0,
    ...sets.flatMap(({ head, pairs }) => [head, ...pairs.map(({ generation }) => generation)]),
  );
}

/** @param behind whether the set goes behind all others, so that it is not the current one */
function newSet(
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
function addPair(
  { rings: [ring] }: TokenDocument,
  set: TokenSet,
  added: KeptPair & { pair: TokenPair },
): void {
  const at = set.pairs.findIndex(isPair(added.generation, added.attempt));
  if (at < 0) set.pairs.push(added);
  else set.pairs[at] = added;
  ring!.known[fingerprintOf(ring!, added.pair.refreshToken)] ??= added.generation;
}

function isPair(generation: number, attempt: string) {
  return (kept: KeptPair) => kept.generation === generation && kept.attempt === attempt;
}

/** The generation that first had this refresh token. */
function knownAs({ rings }: TokenDocument, refreshToken: string): number | undefined {
  return rings
    .map((ring) => ring.known[fingerprintOf(ring, refreshToken)])
    .find((generation) => generation !== undefined);
}

function addRings({ rings }: TokenDocument, added: readonly FingerprintRing[]): void {
  for (const { key, known } of added) {
    const same = rings.find((ring) => ring.key === key);
    if (same) Object.assign(same.known, { ...known, ...same.known });
    else rings.push({ key, known: { ...known } });
  }
}

type Outcome = HistoryEntry['outcome'];

/** Outcomes that leave open whether the refresh token is spent. */
const OPEN_OUTCOMES: readonly Outcome[] = ['begun', 'uncertain', 'early-or-spent'];
/** The length of the audit trail. Entries about refresh tokens in use, and about early refusals, are kept longer. */
const KEPT_ATTEMPTS = 1_000;

function addAttempt(document: TokenDocument, added: Omit<Attempt, 'latencyMs'>): void {
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
function endEntry(
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
function countUnanswered(
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
 * Exchanges of a generation, by default the head, that were refused while its access token worked. What the refusal
 * meant is still unknown: a later answer would have changed their outcome.
 */
function earlyOrSpent(
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
function refusesEarly({ sets, attempts }: TokenDocument, { baseUrl }: TokenSet): boolean {
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
function isRefusedEarly(document: TokenDocument, set: TokenSet): boolean {
  if (earlyOrSpent(document, set).length > 0) return true;
  const isSpent = document.attempts.some(
    (entry) => entry.set === set.name && entry.generation === set.head && entry.outcome === 'spent',
  );
  return set.lost && !isSpent && refusesEarly(document, set);
}

function isLost(document: TokenDocument, set: TokenSet): boolean {
  return set.lost && !isRefusedEarly(document, set);
}
