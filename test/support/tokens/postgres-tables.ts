import { OPEN_OUTCOMES, READ_OUTCOMES } from '../../../src/tokens/store/rows.ts';
import {
  LAYOUT,
  TABLES,
  type Row,
  type StatementName,
  type Value,
} from '../../../src/tokens/store/postgres/statements.ts';

/** The tables of the token store. A transaction that writes works on a copy; rows are replaced, never changed. */
export interface Tables {
  isThere: boolean;
  rings: Row[];
  sets: Row[];
  pairs: Row[];
  attempts: Row[];
  fingerprints: Row[];
}

export const NO_TABLES: Tables = {
  isThere: false,
  rings: [],
  sets: [],
  pairs: [],
  attempts: [],
  fingerprints: [],
};

export function copyOf(tables: Tables): Tables {
  const { isThere, rings, sets, pairs, attempts, fingerprints } = tables;
  return {
    isThere,
    rings: [...rings],
    sets: [...sets],
    pairs: [...pairs],
    attempts: [...attempts],
    fingerprints: [...fingerprints],
  };
}

/**
 * The effects of the statements of src/tokens/store/postgres/statements.ts, in a transaction that no other overlaps.
 */
export function execute(
  name: StatementName,
  values: readonly Value[],
  tables: Tables,
  now: number,
): Row[] {
  return STATEMENTS[name](tables, values, now);
}

type Statement = (tables: Tables, values: readonly Value[], now: number) => Row[];

const SET = ['id', 'name', 'base_url', 'head', 'lost', 'moved_to', 'withdrawn'];
const CLAIM = ['claim', 'claim_at', 'claim_until', 'claim_ended'];
const PAIR = ['set_id', 'generation', 'attempt', 'pair', 'saved_at', 'imported', 'was_head'];
const ATTEMPT = ['attempt', 'set_name', 'generation', 'at', 'outcome', 'replica'];

const STATEMENTS: Record<StatementName, Statement> = {
  // The database has the locks.
  lockCreation: () => [],
  lockStore: () => [{ layout: LAYOUT }],
  findTables: ({ isThere }) => (isThere ? TABLES.map((tablename) => ({ tablename })) : []),
  // Tables that are there have a layout.
  findRows: () => [{ found: 1 }],
  createTables: (tables) => {
    tables.isThere = true;
    return [];
  },
  restoreHeads: (tables) => {
    const restored = tables.sets.map((set) => {
      const isNewer = (row: Row) =>
        row['set_id'] === set['id'] &&
        row['was_head'] === true &&
        Number(row['generation']) > Number(set['head']);
      return tables.pairs
        .filter(isNewer)
        .reduce((at, { generation }) => ({ ...at, head: generation }), set);
    });
    const isChanged = restored.some((set, index) => set !== tables.sets[index]);
    tables.sets = restored;
    return isChanged ? [{}] : [];
  },
  insertLayout: () => [],
  renameTables: notSimulated,
  readLayout: ({ isThere }) => (isThere ? [{ layout: LAYOUT, standby: false }] : []),
  readRings: ({ rings }, _values, now) => rings.map((ring) => ({ ...ring, now })),
  readSets: ({ sets }) => sets.toSorted((one, other) => Number(other['id']) - Number(one['id'])),
  readPairs: ({ pairs }) => [...pairs],
  readAttempts: ({ attempts }, [attempt]) =>
    attempts.filter((row) => isIn(READ_OUTCOMES, row) || row['attempt'] === attempt),
  findFingerprints: ({ fingerprints }, [prints]) =>
    fingerprints
      .filter(({ fingerprint }) => (prints as readonly string[]).includes(String(fingerprint)))
      .slice(0, 1),
  readFingerprints: ({ fingerprints }) => [...fingerprints],
  readHistory: ({ attempts }, [limit]) => attempts.toReversed().slice(0, Number(limit)),

  insertSet: ({ sets }, values) => {
    sets.push(rowOf([...SET, ...CLAIM], values));
    return [];
  },
  updateSet: ({ sets }, values) => {
    const [id, name, , , , , , , , , , head, claim] = values;
    const at = sets.findIndex(
      (row) =>
        row['id'] === id && row['name'] === name && row['head'] === head && row['claim'] === claim,
    );
    if (at < 0) return [];
    sets[at] = rowOf([...SET, ...CLAIM], values);
    return [{ id }];
  },
  insertPair: ({ pairs }, values) => {
    const [set, generation, attempt] = values;
    const at = pairs.findIndex((row) => isPair(row, set, generation, attempt));
    if (at < 0) pairs.push(rowOf(PAIR, values));
    else if (pairs[at]!['pair'] === '' || pairs[at]!['was_head'] === false) {
      pairs[at] = rowOf(PAIR, values);
    }
    return [];
  },
  sealPair: ({ pairs }, [set, generation, attempt, pair]) => {
    const at = pairs.findIndex((row) => isPair(row, set, generation, attempt));
    if (at >= 0) pairs[at] = { ...pairs[at], pair };
    return [];
  },
  dropPairs: (tables, [set, before]) => {
    tables.pairs = tables.pairs.filter(
      (row) =>
        row['set_id'] !== set || Number(row['generation']) >= Number(before) || row['pair'] !== '',
    );
    return [];
  },
  insertAttempt: ({ attempts }, values) => {
    attempts.push({ ...rowOf(ATTEMPT, values), latency_ms: null });
    return [];
  },
  // No history is so long.
  dropAttempts: () => [],
  endAttempt: ({ attempts }, [attempt, outcome, latency]) => {
    const at = attempts.findIndex((row) => row['attempt'] === attempt && isIn(OPEN_OUTCOMES, row));
    if (at >= 0) attempts[at] = { ...attempts[at], outcome, latency_ms: latency };
    return [];
  },
  insertRing: ({ rings }, [key]) => {
    const ring = { id: rings.length + 1, key };
    rings.push(ring);
    return [ring];
  },
  sealRing: () => [],
  insertFingerprint: ({ fingerprints }, [ring, fingerprint, generation]) => {
    const isThere = fingerprints.some(
      (row) => row['ring_id'] === ring && row['fingerprint'] === fingerprint,
    );
    if (!isThere) fingerprints.push({ ring_id: ring, fingerprint, generation });
    return [];
  },
  announce: () => [],
  findPageTable: notSimulated,
  createPageTable: notSimulated,
  takePages: notSimulated,
  dropFullBudgets: notSimulated,
};

/** Gateways count the pages of callers, and a command replaces tables; a history has only keepers. */
function notSimulated(): never {
  throw new Error('This is not simulated.');
}

function rowOf(columns: readonly string[], values: readonly Value[]): Row {
  return Object.fromEntries(columns.map((column, index) => [column, values[index]]));
}

function isIn(outcomes: readonly unknown[], { outcome }: Row): boolean {
  return outcomes.includes(outcome);
}

function isPair(row: Row, set: unknown, generation: unknown, attempt: unknown): boolean {
  return row['set_id'] === set && row['generation'] === generation && row['attempt'] === attempt;
}
