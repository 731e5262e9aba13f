import {
  LAYOUT,
  TABLES,
  type Row,
  type StatementName,
  type Value,
} from '../../../src/tokens/store/postgres/connection.ts';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import {
  openDocument,
  sealDocument,
  type TokenDocument,
} from '../../../src/tokens/store/token-document.ts';

/** The tables of the token store. A transaction that writes works on a copy. */
export interface Tables {
  isThere: boolean;
  /** Not encrypted. */
  document: string | undefined;
}

export const NO_TABLES: Tables = { isThere: false, document: undefined };

const sealer = createSealer([]);

/** Undefined if there is none, or if it is damaged. */
export function documentIn({ document }: Tables): TokenDocument | undefined {
  try {
    return document === undefined ? undefined : openDocument(document, sealer);
  } catch {
    return undefined;
  }
}

export function withDocument(tables: Tables, document: TokenDocument): Tables {
  return { ...tables, document: sealDocument(document, sealer) };
}

/**
 * The effects of the statements of src/tokens/store/postgres/connection.ts, in a transaction that no other overlaps.
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

const STATEMENTS: Record<StatementName, Statement> = {
  // The database has the locks.
  lockCreation: () => [],
  lockStore: () => [{ layout: LAYOUT }],
  findTables: ({ isThere }) => (isThere ? TABLES.map((tablename) => ({ tablename })) : []),
  createTables: (tables) => {
    tables.isThere = true;
    return [];
  },
  renameTables: (tables) => {
    Object.assign(tables, NO_TABLES);
    return [];
  },
  insertLayout: () => [],
  // Tables that are there have a layout.
  readLayout: ({ isThere }) => (isThere ? [{ layout: LAYOUT, standby: false }] : []),
  findDocument: ({ document }) => (document === undefined ? [] : [{ id: 1 }]),
  readDocument: ({ document }, _values, now) => (document === undefined ? [] : [{ document, now }]),
  writeDocument: (tables, [document]) => {
    tables.document = document as string;
    return [];
  },
  announce: () => [],
  readFirstRings: notSimulated,
  readFirstSets: notSimulated,
  readFirstPairs: notSimulated,
  readFirstAttempts: notSimulated,
  readFirstFingerprints: notSimulated,
  dropFirstTables: notSimulated,
  renewLayout: notSimulated,
};

/** Gateways bring older stores to this layout; a history has only keepers. */
function notSimulated(): never {
  throw new Error('This is not simulated.');
}
