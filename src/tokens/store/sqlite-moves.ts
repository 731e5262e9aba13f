import { randomUUID } from 'node:crypto';
import type { SqliteTables } from './sqlite-tables.ts';
import type { MovedSet } from './token-store.ts';

export const UNDER_WAY =
  'An exchange of the refresh token is under way. Nothing was moved; try again when it has ended.';

interface Sign {
  readonly replica: string;
}

export function moveOut(
  tables: SqliteTables,
  { to, replica }: Sign & { to: string },
  at: number,
): MovedSet {
  const set = tables.current();
  if (!set) throw new Error('There is no token set to move.');
  if (set.moved_to !== null && set.moved_to !== to) {
    throw new Error(`The token set was moved to ${set.moved_to} before. Nothing was changed.`);
  }
  if (set.moved_to === null) {
    if (set.lost === 1) {
      throw new Error(
        'The token set is lost, so there is nothing to move. Import a new one there.',
      );
    }
    const isDoubtful = tables.attempts.countOpen(set.name, set.head, null) > 0;
    if (set.claim_attempt !== null || isDoubtful) {
      throw new Error(
        'An exchange of the refresh token is uncertain. Run `tokens recover` first; nothing was moved.',
      );
    }
    tables.writeSet({ ...set, moved_to: to });
    const entry = { set: set.name, attempt: randomUUID(), generation: set.head, at, replica };
    tables.attempts.add({ ...entry, outcome: 'moved-out' });
  }
  const { generation, pair, savedAt, imported } = tables.headPair(set);
  const fingerprints = tables.rings.all();
  return {
    baseUrl: set.base_url,
    generation,
    pair,
    age: at - savedAt,
    imported,
    fingerprints,
  };
}

export function moveBack(tables: SqliteTables, to: string): void {
  const set = tables.current();
  if (set?.moved_to === to) tables.writeSet({ ...set, moved_to: null });
}

/** @param place of this store, for people */
export function moveIn(
  tables: SqliteTables,
  moved: MovedSet & Sign,
  place: string,
  at: number,
): void {
  const { baseUrl, generation: given, pair, age, imported, fingerprints, replica } = moved;
  const savedAt = at - age;
  const newest = tables.newestGeneration();
  // Each move gives a higher generation: a known token of no higher one has been taken over before, and may
  // have been exchanged or moved on since. Were it refused or taken again, it would have two owners.
  if (given <= newest && tables.rings.find(pair.refreshToken) !== undefined) return;
  const head = tables.current();
  if (head && head.lost === 0 && head.moved_to === null) {
    throw new Error(
      `The store (${place}) holds a token set that is in use (generation ${head.head}). Nothing was moved; choose another store.`,
    );
  }
  const generation = Math.max(given, newest) + 1;
  const set = tables.addSet(baseUrl, generation);
  tables.rings.add(fingerprints);
  tables.addPair(set, { generation, attempt: 'moved', pair, savedAt, imported, wasHead: true });
  const entry = { set: set.name, attempt: randomUUID(), generation, at, replica };
  tables.attempts.add({ ...entry, outcome: 'moved-in' });
}
