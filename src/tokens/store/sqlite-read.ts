import type { DatabaseSync } from 'node:sqlite';
import { shownFingerprint } from './fingerprint.ts';
import type { ExchangeLock } from './exchange-lock.ts';
import type { SetRow } from './sqlite-rows.ts';
import type { SqliteTables } from './sqlite-tables.ts';
import { inOneView } from './sqlite-transaction.ts';
import type { StoredTokens } from './token-store.ts';

/** What the store holds, in one view of it. */
export function readStored(
  database: DatabaseSync,
  tables: SqliteTables,
  lock: ExchangeLock,
  now: () => number,
): StoredTokens | null {
  let claimed: string | null = null;
  let live = false;
  for (;;) {
    const stored = inOneView(database, () => {
      const set = tables.current();
      return set ? storedTokens(tables, set, live, now()) : null;
    });
    const found = stored?.claim?.attempt ?? null;
    // Whether the lock is held says something of this claim alone: of one that is there before and after.
    if (found === claimed) return stored;
    claimed = found;
    live =
      claimed !== null && (lock.heldFor === claimed || lock.isHeldByOthers() || isUnseen(claimed));
  }

  function isUnseen(attempt: string): boolean {
    const guard = { inode: lock.inode, now: now() };
    return guard.now < (tables.attempts.unseenUntil(attempt, guard) ?? 0);
  }
}

function storedTokens(
  tables: SqliteTables,
  set: SetRow,
  isLive: boolean,
  now: number,
): StoredTokens {
  const { name, head: generation, claim_attempt: attempt } = set;
  const pairs = tables.pairs(set, generation);
  const { pair, attempt: gaveIt, savedAt, imported } = tables.headPair(set, pairs);
  const ofGeneration = pairs.filter((one) => one.generation === generation);
  return {
    storeId: tables.rings.storeId(),
    set: name,
    baseUrl: set.base_url,
    generation,
    pair,
    attempt: gaveIt,
    fingerprint: shownFingerprint(pair.refreshToken),
    savedAt,
    age: now - savedAt,
    lost: set.lost === 1,
    movedTo: set.moved_to,
    imported,
    claim: attempt === null ? null : { attempt, age: now - set.claim_at!, live: isLive },
    unanswered: tables.attempts.countOpen(name, generation, isLive ? attempt : null),
    surplus: ofGeneration.length - 1,
  };
}
