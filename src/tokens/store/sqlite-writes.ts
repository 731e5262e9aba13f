import type { Guard } from './sqlite-attempts.ts';
import type { KeptPair, SetRow } from './sqlite-rows.ts';
import type { SqliteTables } from './sqlite-tables.ts';
import type {
  Claim,
  Ending,
  ImportOutcome,
  NewClaim,
  NewPair,
  NewSet,
  StoredTokens,
} from './token-store.ts';

/** What the methods of the store do within their transaction. */

export function importSet(
  tables: SqliteTables,
  { baseUrl, pair, replica, after }: NewSet,
  at: number,
  read: () => StoredTokens | null,
): ImportOutcome {
  const head = read();
  const known = tables.rings.find(pair.refreshToken);
  if (known !== undefined) {
    const current = head?.pair.refreshToken === pair.refreshToken;
    return { kind: 'known', generation: known, current };
  }
  if (head?.set !== after?.set || head?.generation !== after?.generation) {
    return { kind: 'overtaken' };
  }
  const generation = tables.newestGeneration() + 1;
  const set = tables.addSet(baseUrl, generation);
  const kept = { generation, attempt: 'import', pair, savedAt: at, imported: true, wasHead: true };
  tables.addPair(set, kept);
  const entry = { set: set.name, attempt: set.name, generation, at, replica };
  tables.attempts.add({ ...entry, outcome: 'imported' });
  return { kind: 'imported', stored: read()! };
}

export function withdrawSet(tables: SqliteTables, name: string): boolean {
  const [current, before] = tables.sets().filter(({ withdrawn }) => withdrawn === 0);
  if (current?.name !== name || current.claim_attempt !== null) return false;
  if (!before || before.lost === 1 || before.moved_to !== null) return false;
  if (!tables.findHead(before)) return false;
  tables.writeSet({ ...current, withdrawn: 1 });
  return true;
}

/** Whoever calls it holds the lock. */
export function claimSet(tables: SqliteTables, claim: NewClaim, guard: Guard): Claim | undefined {
  const { set: name, generation, attempt, over, lifeMs, replica } = claim;
  const at = guard.now;
  const set = tables.current();
  if (set?.name !== name || set.head !== generation || set.moved_to !== null) return undefined;
  const before = set.claim_attempt;
  const known = tables.attempts.find(attempt);
  if (known)
    return before === attempt && known.outcome === 'begun' ? { exclusive: true } : undefined;
  if (over !== undefined && over !== before) return undefined;
  const unseenUntil = before === null ? undefined : tables.attempts.unseenUntil(before, guard);
  if (unseenUntil !== undefined && guard.now < unseenUntil) return undefined;
  // What cannot be read now would keep the pair from being saved, and then it is too late.
  tables.verify();
  tables.writeSet({ ...set, claim_attempt: attempt, claim_at: Math.round(at) });
  tables.attempts.add({ set: name, attempt, generation, at, outcome: 'begun', replica });
  tables.attempts.guard(attempt, guard, lifeMs);
  return { exclusive: unseenUntil === undefined };
}

export function endAttempt(
  tables: SqliteTables,
  attempt: string,
  { outcome, latencyMs }: Ending,
): void {
  const begun = tables.attempts.find(attempt);
  const set = tables.sets().find(({ name }) => name === begun?.set);
  if (!begun || !set) return;
  const isLost = outcome === 'invalid-grant' && set.head === begun.generation;
  const isOver = outcome !== 'uncertain' && set.claim_attempt === attempt;
  tables.writeSet({
    ...set,
    ...(isLost && { lost: 1 }),
    ...(isOver && { claim_attempt: null, claim_at: null }),
  });
  tables.attempts.end(attempt, outcome, latencyMs);
}

/** @param description of the store */
export function savePair(tables: SqliteTables, saved: NewPair, description: string): boolean {
  const { generation, attempt, pair, outcome, at, latencyMs } = saved;
  const set = setOf(tables, saved, description);
  const next = generation + 1;
  const isSame = (one: KeptPair) => one.generation === next && one.attempt === attempt;
  const there = tables.pairs(set, next).find(isSame);
  if (there) return there.wasHead;
  const wasHead = set.head <= generation;
  tables.addPair(set, { generation: next, attempt, pair, savedAt: at, imported: false, wasHead });
  tables.attempts.end(attempt, outcome, latencyMs);
  const isClaimed = wasHead || set.claim_attempt === attempt;
  const moved: SetRow = {
    ...set,
    ...(wasHead && { head: next, lost: 0 }),
    ...(isClaimed && { claim_attempt: null, claim_at: null }),
  };
  tables.writeSet(moved);
  try {
    forgetSpent(tables, moved, attempt);
  } catch {
    // Something else in the file is damaged, and the next start will say so: this pair is saved all the same.
  }
  return wasHead;
}

function setOf(
  tables: SqliteTables,
  { set: name, generation, home }: NewPair,
  description: string,
) {
  const known = tables.sets().find((one) => one.name === name);
  if (known) return known;
  const isCopy = home?.storeId === tables.rings.storeId();
  if (!home || !(isCopy || home.store === description)) {
    throw new Error(`the token store does not know the set ${name}`);
  }
  const service = tables.current()?.base_url ?? home.baseUrl;
  if (service !== home.baseUrl) throw new Error(`the token store belongs to ${service}`);
  const isNewest = generation + 1 > tables.newestGeneration();
  return isCopy && isNewest
    ? tables.addSet(home.baseUrl, generation, name)
    : tables.addSetBehind(name, home.baseUrl, generation);
}

export function holdsPair(
  tables: SqliteTables,
  { set: name, generation, attempt, pair }: NewPair,
): boolean {
  const next = generation + 1;
  const set = tables.sets().find((one) => one.name === name);
  const isSame = (one: KeptPair) => one.generation === next && one.attempt === attempt;
  if (set && tables.pairs(set, next).some(isSame)) return true;
  // Its row was dropped long ago, or it came here from another store, under another name.
  const isBehind = set === undefined || next < set.head;
  return isBehind && tables.rings.find(pair.refreshToken) !== undefined;
}

const ROWS_KEPT = 100;

/**
 * Spent tokens are worth nothing. Kept are the pair before the head, which may still be in somebody's hands,
 * and the last set that was replaced: replacing it may have been a mistake.
 */
function forgetSpent(tables: SqliteTables, saved: SetRow, attempt: string): void {
  const [current, before] = tables.sets().filter(({ withdrawn }) => withdrawn === 0);
  for (const set of tables.sets()) {
    const isKept = [saved.id, current?.id, before?.id].includes(set.id);
    const from = isKept ? set.head - 1 : Number.POSITIVE_INFINITY;
    for (const kept of tables.pairs(set)) {
      if (kept.generation < from && kept.attempt !== attempt) tables.forgetPair(set, kept);
    }
    tables.dropForgotten(set, set.head - ROWS_KEPT);
  }
}
