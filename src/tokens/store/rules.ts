import { randomUUID } from 'node:crypto';
import { isDatedAhead } from './claim-ends.ts';
import { shownFingerprint } from './fingerprint.ts';
import {
  countUnanswered,
  currentSet,
  earlyOrSpent,
  findHead,
  headPair,
  isLost,
  isRefusedEarly,
  newestGeneration,
  newSet,
  refusesEarly,
  type PairRow,
  type Rows,
  type RowWriter,
  type SetRow,
} from './rows.ts';
import type {
  Claim,
  Ending,
  ImportOutcome,
  MovedSet,
  NewClaim,
  NewPair,
  NewSet,
  StoredTokens,
} from './token-store.ts';

/*
 * The rules of a token store: what each call of `TokenStore` does to the rows. They are the same for every database.
 * Each function is called within one transaction, and no other transaction overlaps with it.
 */

/** @throws StoreUnreadableError if the pair of the current set is not there, or not its newest one */
export function readStored(rows: Rows): StoredTokens | null {
  const set = currentSet(rows);
  if (!set) return null;
  const { name, baseUrl, head: generation, movedTo, claim } = set;
  const pairs = rows.pairs(set, generation);
  const { pair, attempt, savedAt, imported } = headPair(rows, set);
  const live = claim !== null && rows.isLive(claim);
  return {
    storeId: rows.storeId,
    set: name,
    baseUrl,
    generation,
    pair,
    attempt,
    fingerprint: shownFingerprint(pair.refreshToken),
    savedAt,
    age: rows.now - savedAt,
    lost: isLost(rows, set),
    movedTo,
    imported,
    claim: claim && {
      attempt: claim.attempt,
      age: rows.now - claim.at,
      live,
      isDatedAhead: isDatedAhead(claim, rows.now),
    },
    unanswered: countUnanswered(rows, set, live ? claim.attempt : null),
    surplus: pairs.filter((one) => one.generation === generation).length - 1,
    refusedEarly: isRefusedEarly(rows, set),
    refusesEarly: refusesEarly(rows, set),
  };
}

export function importSet(
  rows: Rows,
  write: RowWriter,
  { baseUrl, pair, replica, after }: NewSet,
): ImportOutcome {
  const head = currentSet(rows);
  const known = rows.knownAs(pair.refreshToken);
  if (known !== undefined) {
    const current =
      head !== undefined && headPair(rows, head).pair.refreshToken === pair.refreshToken;
    return { kind: 'known', generation: known, current };
  }
  if (head?.name !== after?.set || head?.head !== after?.generation) return { kind: 'overtaken' };
  const generation = newestGeneration(rows) + 1;
  const set = newSet(rows, write, { baseUrl, head: generation });
  const at = rows.now;
  const row = { generation, attempt: 'import', pair, savedAt: at, imported: true, wasHead: true };
  write.addPair(set, row);
  const entry = { set: set.name, attempt: set.name, generation, at, replica };
  write.addAttempt({ ...entry, outcome: 'imported' });
  const sets = [set, ...rows.sets];
  return { kind: 'imported', stored: readStored({ ...rows, sets, pairs: () => [row] })! };
}

export function withdrawSet(rows: Rows, write: RowWriter, name: string): boolean {
  const [current, before] = rows.sets.filter(({ withdrawn }) => !withdrawn);
  if (current?.name !== name || current.claim !== null) return false;
  if (!before || isLost(rows, before) || before.movedTo !== null) return false;
  if (!findHead(rows, before)) return false;
  write.putSet({ ...current, withdrawn: true });
  return true;
}

export function claimSet(
  rows: Rows,
  write: RowWriter,
  { set: name, generation, attempt, over, knowsRefusal, lifeMs, replica }: NewClaim,
): Claim | undefined {
  const set = currentSet(rows);
  if (set?.name !== name || set.head !== generation || set.movedTo !== null) return undefined;
  const before = set.claim;
  if (rows.attempts.some((one) => one.attempt === attempt)) {
    // Asked again: its outcome was unknown.
    const isOurs = before?.attempt === attempt && !before.ended;
    return isOurs ? { exclusive: rows.isExclusive(before) } : undefined;
  }
  if (over !== undefined && over !== (before?.attempt ?? null)) return undefined;
  if (before && rows.isLive(before)) return undefined;
  if (knowsRefusal === false && isRefusedEarly(rows, set)) return undefined;
  // What cannot be read now would keep the pair from being saved, and then it is too late.
  for (const each of rows.sets) rows.pairs(each);
  rows.rings();
  headPair(rows, set);
  const at = rows.now;
  const claim = { attempt, at, until: at + lifeMs, lock: rows.lock, ended: false };
  write.putSet({ ...set, claim });
  write.addAttempt({ set: name, attempt, generation, at, outcome: 'begun', replica });
  return { exclusive: rows.isExclusive(before) };
}

export function endAttempt(
  rows: Rows,
  write: RowWriter,
  attempt: string,
  { outcome, latencyMs }: Ending,
): void {
  const begun = rows.attempts.find((one) => one.attempt === attempt);
  const set = rows.sets.find(({ name }) => name === begun?.set);
  if (!begun || !set) return;
  const isSpent = outcome === 'invalid-grant' && set.head === begun.generation;
  const refused = isSpent ? earlyOrSpent(rows, set) : [];
  // Otherwise a loss that a process of an older version has recorded, which may have been too early, looks the same.
  const isProved = isSpent && (refused.length > 0 || refusesEarly(rows, set));
  const own = set.claim?.attempt === attempt ? set.claim : null;
  const isUncertain = outcome === 'uncertain';
  write.putSet({
    ...set,
    ...(isSpent && { lost: true }),
    ...(own && { claim: isUncertain ? { ...own, ended: true } : null }),
  });
  write.endAttempt(attempt, isProved ? 'spent' : outcome, latencyMs);
  for (const one of refused) write.endAttempt(one.attempt, 'spent', one.latencyMs ?? 0);
}

/** @param now the wall clock of this machine, which `saved.at` is of, ms */
export function savePair(rows: Rows, write: RowWriter, saved: NewPair, now: number): boolean {
  const { generation, attempt, pair, outcome, at, latencyMs } = saved;
  const set = homeSet(rows, write, saved);
  const next = generation + 1;
  const there = rows.pairs(set, next).find(isPair(next, attempt));
  const isHeadless = set === currentSet(rows) && set.head === next && !findHead(rows, set);
  if (there && !isHeadless) {
    if (there.wasHead && set.head < next) write.putSet(advanced(rows, set, next));
    return there.wasHead;
  }
  const wasHead = set.head <= generation || isHeadless;
  // It is not older than its exchange, nor than the pair before it, even if the wall clock of this machine has jumped, or
  // the store's clock is behind now: a pair that looks past its end is never refreshed. Times that were written while the
  // store's clock was ahead show nothing.
  const begun = rows.attempts.find((one) => one.attempt === attempt);
  const savedAt = Math.max(
    begun ? Math.min(begun.at, rows.now) : 0,
    Math.min(newestSavedAt(rows, set, generation), now),
    rows.now - Math.max(0, now - at),
  );
  write.addPair(set, { generation: next, attempt, pair, savedAt, imported: false, wasHead });
  resolveRefusals(rows, write, set, saved);
  write.endAttempt(attempt, outcome, latencyMs);
  const moved = set.head <= generation ? advanced(rows, set, next) : set;
  const kept = moved.claim?.attempt === attempt ? { ...moved, claim: null } : moved;
  write.putSet(kept);
  try {
    forgetSpent(rows, write, kept, attempt);
  } catch {
    // Something else in the store is damaged, and the next start reports that: this pair is saved all the same.
  }
  return wasHead;
}

/** A refusal was too early if an exchange that began after it gave the pair; if an earlier one did, it had spent the token. */
function resolveRefusals(
  { attempts }: Rows,
  write: RowWriter,
  set: SetRow,
  { generation, attempt }: NewPair,
): void {
  const begun = attempts.findIndex((one) => one.attempt === attempt);
  for (const one of earlyOrSpent({ attempts }, set, generation)) {
    const isEarly = attempts.indexOf(one) < begun;
    write.endAttempt(one.attempt, isEarly ? 'early' : 'spent', one.latencyMs ?? 0);
  }
}

/** The set with a later head. A claim of that very generation stays: its head may have been moved back meanwhile. */
function advanced({ attempts }: Rows, set: SetRow, head: number): SetRow {
  const claimed = attempts.find(({ attempt }) => attempt === set.claim?.attempt)?.generation;
  return { ...set, head, lost: false, ...(claimed !== head && { claim: null }) };
}

/** When the newest pair was saved that is not newer than this generation; 0 if that is unknown. */
function newestSavedAt(rows: Rows, set: SetRow, generation: number): number {
  try {
    // The store may be behind: a failover may have lost the pair of the generation itself.
    const older = rows.pairs(set, Math.min(generation, set.head));
    const times = older.filter((row) => row.generation <= generation).map((row) => row.savedAt);
    return Math.max(0, ...times);
  } catch {
    // A damaged row, which the next start reports, must not keep this pair from being saved.
    return 0;
  }
}

export function holdsPair(rows: Rows, { set: name, generation, attempt, pair }: NewPair): boolean {
  const next = generation + 1;
  const set = rows.sets.find((one) => one.name === name);
  if (set && rows.pairs(set, next).some(isPair(next, attempt))) return true;
  // Its row was dropped long ago, or it came here from another store, under another name.
  const isBehind = set === undefined || next < set.head;
  return isBehind && rows.knownAs(pair.refreshToken) !== undefined;
}

export function moveOut(
  rows: Rows,
  write: RowWriter,
  { to, replica }: { to: string; replica: string },
): MovedSet {
  const set = currentSet(rows);
  if (!set) throw new Error('There is no token set to move.');
  const { name, baseUrl, head: generation, movedTo, claim } = set;
  if (movedTo !== null && movedTo !== to) {
    throw new Error(`The token set was moved to ${movedTo} before. Nothing was changed.`);
  }
  if (movedTo === null) {
    if (isLost(rows, set)) throw new Error(NOTHING_TO_MOVE);
    if (claim && rows.isLive(claim)) throw new Error(UNDER_WAY);
    if (claim || countUnanswered(rows, set, null) > 0) throw new Error(UNCERTAIN);
    write.putSet({ ...set, movedTo: to });
    const entry = { set: name, attempt: randomUUID(), generation, at: rows.now, replica };
    write.addAttempt({ ...entry, outcome: 'moved-out' });
  }
  const { pair, savedAt, imported } = headPair(rows, set);
  const age = rows.now - savedAt;
  const early = {
    refusedEarly: isRefusedEarly(rows, set),
    refusesEarly: refusesEarly(rows, set),
  };
  return { baseUrl, generation, pair, age, imported, ...early, fingerprints: rows.rings() };
}

export const UNDER_WAY =
  'An exchange of the refresh token is under way. Nothing was moved; try again when it has ended.';
const UNCERTAIN =
  'An exchange of the refresh token is uncertain. Run `tokens recover` first; nothing was moved.';
const NOTHING_TO_MOVE =
  'The token set is lost, so there is nothing to move. Import a new one there.';

export function moveBack(rows: Rows, write: RowWriter, to: string): void {
  const set = currentSet(rows);
  if (set?.movedTo === to) write.putSet({ ...set, movedTo: null });
}

/** @param place the description of the store */
export function moveIn(
  rows: Rows,
  write: RowWriter,
  moved: MovedSet & { replica: string },
  place: string,
): void {
  const { baseUrl, generation: given, pair, age, imported, fingerprints, replica } = moved;
  const newest = newestGeneration(rows);
  // Each move gives a higher generation: a known token of no higher one has been taken over before, and may have been
  // exchanged or moved on since. If it were refused or taken again, it would have two owners.
  if (given <= newest && rows.knownAs(pair.refreshToken) !== undefined) return;
  const head = currentSet(rows);
  if (head && !isLost(rows, head) && head.movedTo === null) {
    throw new Error(
      `The store (${place}) holds a token set that is in use (generation ${head.head}). Nothing was moved; choose another store.`,
    );
  }
  const generation = Math.max(given, newest) + 1;
  const set = newSet(rows, write, { baseUrl, head: generation });
  write.addRings(fingerprints);
  const at = rows.now;
  const row = { generation, attempt: 'moved', pair, savedAt: at - age, imported, wasHead: true };
  write.addPair(set, row);
  const entry = () => ({ set: set.name, attempt: randomUUID(), generation, at, replica });
  if (moved.refusesEarly) write.addAttempt({ ...entry(), outcome: 'early' });
  if (moved.refusedEarly) write.addAttempt({ ...entry(), outcome: 'early-or-spent' });
  write.addAttempt({ ...entry(), outcome: 'moved-in' });
}

/** The set of a pair: one that the store has, or one that is taken in, since it belongs here or was in use here. */
function homeSet(rows: Rows, write: RowWriter, { set: name, generation, home }: NewPair): SetRow {
  const known = rows.sets.find((one) => one.name === name);
  if (known) return known;
  if (!home) throw new Error(`the token store does not know the set ${name}`);
  const { baseUrl } = home;
  const service = currentSet(rows)?.baseUrl ?? baseUrl;
  if (service !== baseUrl) throw new Error(`the token store belongs to ${service}`);
  const isCopy = home.storeId === rows.storeId;
  const isNewest = generation + 1 > newestGeneration(rows);
  return newSet(rows, write, { name, baseUrl, head: generation }, !(isCopy && isNewest));
}

const ROWS_KEPT = 100;

/**
 * Spent tokens are worth nothing. The pair before the head is kept, which another process may still use, and so is the
 * last set that was replaced: replacing it may have been a mistake.
 */
function forgetSpent(rows: Rows, write: RowWriter, saved: SetRow, attempt: string): void {
  const sets = rows.sets.map((set) => (set.id === saved.id ? saved : set));
  const [current, before] = sets.filter(({ withdrawn }) => !withdrawn);
  for (const set of sets) {
    const isKept = [saved.id, current?.id, before?.id].includes(set.id);
    const from = isKept ? set.head - 1 : Number.POSITIVE_INFINITY;
    for (const kept of rows.pairs(set)) {
      if (kept.generation < from && kept.attempt !== attempt) write.forgetPair(set, kept);
    }
    write.dropForgotten(set, set.head - ROWS_KEPT);
  }
}

function isPair(generation: number, attempt: string) {
  return (one: PairRow) => one.generation === generation && one.attempt === attempt;
}
