import { randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Sealer } from './seal.ts';
import type { KeptPair, SetRow } from './sqlite-rows.ts';
import { about, type TokenField } from './sqlite-layout.ts';
import { prepareAttempts } from './sqlite-attempts.ts';
import { prepareRings } from './sqlite-rings.ts';
import { pairSum, setSum } from './sqlite-sums.ts';

/** The rows of the SQLite store. Those methods that write are called within a transaction. */
export type SqliteTables = ReturnType<typeof prepareTables>;

type PairRow = Record<TokenField, string> & {
  generation: number;
  attempt: string;
  expires_in: number;
  refresh_expires_in: number;
  holder: string | null;
  saved_at: number;
  imported: number;
  was_head: number;
  sum: string;
};

/** What stands in the place of a token that was forgotten. No token is empty. */
const FORGOTTEN = '';

export function prepareTables(database: DatabaseSync, sealer: Sealer) {
  const rings = prepareRings(database, sealer);
  const allSets = database.prepare('SELECT * FROM token_set ORDER BY id DESC');
  const insertSet = database.prepare(
    "INSERT INTO token_set (id, name, base_url, head, sum) VALUES (?, ?, ?, ?, '')",
  );
  const updateSet = database.prepare(`
    UPDATE token_set SET head = ?, lost = ?, moved_to = ?, withdrawn = ?, claim_attempt = ?,
                         claim_at = ?, sum = ? WHERE id = ?`);
  const pairsOfSet = database.prepare(
    'SELECT * FROM token_pair WHERE set_id = ? AND generation >= ? ORDER BY rowid',
  );
  const insertPair = database.prepare(
    'INSERT INTO token_pair VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const forgetPair = database.prepare(`
    UPDATE token_pair SET access_token = '', refresh_token = '', sum = ?
    WHERE set_id = ? AND generation = ? AND attempt = ?`);
  const dropForgotten = database.prepare(
    "DELETE FROM token_pair WHERE set_id = ? AND generation < ? AND refresh_token = ''",
  );
  const newest = database.prepare('SELECT max(generation) AS generation FROM token_pair');

  const tables = {
    rings,
    attempts: prepareAttempts(database, rings.ownKey),

    /** Newest first. @throws when one was altered */
    sets: (): SetRow[] => {
      const key = rings.ownKey();
      return allSets.all().map((row) => {
        const { sum, ...set } = row as unknown as SetRow & { sum: string };
        if (sum !== setSum(key, set)) throw new Error(DAMAGED);
        return set;
      });
    },

    current: (): SetRow | undefined => tables.sets().find(({ withdrawn }) => withdrawn === 0),

    addSet: (baseUrl: string, head: number, name: string = randomUUID()): SetRow => {
      return writeNewSet(null, name, baseUrl, head);
    },

    /** A set of another file, behind all others. */
    addSetBehind: (name: string, baseUrl: string, head: number): SetRow => {
      const last = tables.sets().at(-1);
      return writeNewSet(last ? last.id - 1 : null, name, baseUrl, head);
    },

    writeSet: (set: SetRow): void => {
      const { id, head, lost, moved_to, withdrawn, claim_attempt, claim_at } = set;
      const sum = setSum(rings.ownKey(), set);
      updateSet.run(head, lost, moved_to, withdrawn, claim_attempt, claim_at, sum, id);
    },

    /** In the order in which they came. Those that were forgotten have empty tokens. @throws when one was altered */
    pairs: (set: SetRow, from = 0): KeptPair[] => {
      const key = rings.ownKey();
      return pairsOfSet.all(set.id, from).map((columns) => {
        const row = columns as unknown as PairRow;
        const kept = openPair(row, set);
        if (row.sum !== pairSum(key, set, kept)) throw new Error(DAMAGED);
        return kept;
      });
    },

    /** Undefined when it was forgotten. */
    findHead: (set: SetRow, pairs?: readonly KeptPair[]): KeptPair | undefined =>
      (pairs ?? tables.pairs(set, set.head)).find(
        (kept) => kept.wasHead && kept.generation === set.head && !isForgotten(kept),
      ),

    /** @throws when it is not there: that of the current set is never forgotten */
    headPair: (set: SetRow, pairs?: readonly KeptPair[]): KeptPair => {
      const found = tables.findHead(set, pairs);
      if (!found) throw new Error(DAMAGED);
      return found;
    },

    addPair: (set: SetRow, given: KeptPair): void => {
      const kept = storable(given);
      const { generation, attempt, pair, savedAt, imported, wasHead } = kept;
      const sealed = (text: string, field: TokenField) =>
        sealer.seal(text, about.token(set.name, set.base_url, generation, field));
      insertPair.run(
        set.id,
        generation,
        attempt,
        sealed(pair.accessToken, 'access_token'),
        sealed(pair.refreshToken, 'refresh_token'),
        pair.expiresIn,
        pair.refreshTokenExpiresIn,
        pair.name,
        savedAt,
        Number(imported),
        Number(wasHead),
        pairSum(rings.ownKey(), set, kept),
      );
      rings.remember(pair.refreshToken, generation);
    },

    /** That there was such a pair stays known. */
    forgetPair: (set: SetRow, kept: KeptPair): void => {
      if (isForgotten(kept)) return;
      const { generation, attempt } = kept;
      const pair = { ...kept.pair, accessToken: FORGOTTEN, refreshToken: FORGOTTEN };
      const sum = pairSum(rings.ownKey(), set, { ...kept, pair });
      forgetPair.run(sum, set.id, generation, attempt);
    },

    /** The rows of forgotten pairs before a generation: so late nobody saves one again. */
    dropForgotten: (set: SetRow, before: number): void => {
      dropForgotten.run(set.id, before);
    },

    newestGeneration: (): number => (newest.get()?.['generation'] as number | null) ?? 0,

    /** @throws Error, or SealError, when anything is damaged or cannot be opened */
    verify: (): void => {
      rings.all();
      const sets = tables.sets();
      for (const set of sets) tables.pairs(set);
      const current = sets.find(({ withdrawn }) => withdrawn === 0);
      if (current) tables.headPair(current);
      else if (sets.length > 0) throw new Error(DAMAGED);
    },
  };
  return tables;

  function writeNewSet(id: number | null, name: string, baseUrl: string, head: number): SetRow {
    const { lastInsertRowid } = insertSet.run(id, name, baseUrl, head);
    const nothing = { lost: 0, moved_to: null, withdrawn: 0, claim_attempt: null, claim_at: null };
    const set = { id: Number(lastInsertRowid), name, base_url: baseUrl, head, ...nothing };
    tables.writeSet(set);
    return set;
  }

  function openPair(row: PairRow, { name, base_url: baseUrl }: SetRow): KeptPair {
    const { generation } = row;
    const opened = (field: TokenField) =>
      row[field] === FORGOTTEN
        ? FORGOTTEN
        : sealer.open(row[field], about.token(name, baseUrl, generation, field));
    return {
      generation,
      attempt: row.attempt,
      pair: {
        accessToken: opened('access_token'),
        refreshToken: opened('refresh_token'),
        expiresIn: row.expires_in,
        refreshTokenExpiresIn: row.refresh_expires_in,
        name: row.holder,
      },
      savedAt: row.saved_at,
      imported: row.imported === 1,
      wasHead: row.was_head === 1,
    };
  }
}

const DAMAGED = 'the file is damaged: what it says of the tokens does not agree with itself';

function isForgotten({ pair }: KeptPair): boolean {
  return pair.refreshToken === FORGOTTEN;
}

/** As SQLite gives it back: half a surrogate pair is no text there, and half a millisecond no integer. */
function storable(kept: KeptPair): KeptPair {
  const { pair, savedAt } = kept;
  const { accessToken, refreshToken, name } = pair;
  return {
    ...kept,
    savedAt: Math.round(savedAt),
    pair: {
      ...pair,
      accessToken: accessToken.toWellFormed(),
      refreshToken: refreshToken.toWellFormed(),
      name: name?.toWellFormed() ?? null,
    },
  };
}
