/*
 * All SQL of the PostgreSQL store. Each statement is short, and has a name, so that another database can stand in for
 * the server: it only has to know these statements.
 *
 * Times are milliseconds since 1970 by the server's clock, which is the only clock.
 */

export type Value = string | number | boolean | null | readonly string[];
export type Row = Record<string, unknown>;

export type StatementName = keyof typeof STATEMENTS;

/** 1: its content was spread over `FIRST_TABLES`. */
export const LAYOUT = 2;

/** All but that of the pages of callers, which is made when it is missing. */
export const TABLES = ['recruiting_token_store', 'recruiting_token_document'] as const;

export const FIRST_TABLES = [
  'recruiting_token_pair',
  'recruiting_token_set',
  'recruiting_token_attempt',
  'recruiting_token_fingerprint',
  'recruiting_token_ring',
] as const;

const TABLE_NAMES = [...TABLES, ...FIRST_TABLES].map((name) => `'${name}'`).join(', ');

/** Announces changes. */
export const CHANNEL = 'recruiting_tokens';

/** Any number: only one replica at a time creates the tables. */
const CREATING = 7_235_114;

const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::float8';

/** The same in all parts of a statement. */
const STATEMENT_NOW = '(extract(epoch FROM statement_timestamp()) * 1000)::float8';

/**
 * A caller whose minute is full again only after this time owes so much to a clock that was ahead, not to its pages: it
 * would be refused until that clock is reached again.
 */
const LONGEST_DEBT_MS = 600_000;

// The name of a caller is a digest. A row whose minute is full equals none.
const CREATE_PAGE_TABLE = `
    CREATE TABLE IF NOT EXISTS recruiting_page_budget (caller text PRIMARY KEY, full_at float8 NOT NULL)`;

/**
 * The era names this very table, on a server since its start. A failover, a restart, or a copy that is put in its place
 * gives another one. (The row is written once, so its xmin changes only when it is put there anew. A copy of the whole
 * database has the same row in the same table.)
 */
const ERA = `
  concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),
    (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()), tableoid, xmin) AS era`;

export const STATEMENTS = {
  lockCreation: `SELECT pg_advisory_xact_lock(${CREATING})`,
  // Not to_regclass, whose answer may be from before the lock.
  findTables: `
    SELECT DISTINCT tablename FROM pg_catalog.pg_tables
    WHERE tablename IN (${TABLE_NAMES}) AND schemaname = ANY (current_schemas(false))`,
  /** Those that are missing. */
  createTables: `
    CREATE TABLE IF NOT EXISTS recruiting_token_store (layout int PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS recruiting_token_document (
      id int PRIMARY KEY CHECK (id = 1), document text NOT NULL);${CREATE_PAGE_TABLE}`,

  insertLayout: `INSERT INTO recruiting_token_store VALUES (${LAYOUT})`,
  // The names of their indexes and sequences stay; the new ones get others by themselves.
  renameTables: `
    DO $$
    DECLARE
      found record;
      ending text := '_damaged_' || to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISS');
    BEGIN
      FOR found IN SELECT schemaname, tablename FROM pg_catalog.pg_tables
        WHERE tablename IN (${TABLE_NAMES}) AND schemaname = ANY (current_schemas(false))
      LOOP
        EXECUTE format('ALTER TABLE %I.%I RENAME TO %I', found.schemaname, found.tablename, found.tablename || ending);
      END LOOP;
    END $$`,

  /** Held to the end of the transaction: all that write take turns. */
  lockStore: `SELECT layout, ${ERA} FROM recruiting_token_store FOR UPDATE`,
  readLayout: `SELECT layout, pg_is_in_recovery() AS standby, ${ERA} FROM recruiting_token_store`,
  findDocument: 'SELECT id FROM recruiting_token_document',
  readDocument: `SELECT document, ${NOW} AS now FROM recruiting_token_document`,
  writeDocument: `
    INSERT INTO recruiting_token_document VALUES (1, $1)
    ON CONFLICT (id) DO UPDATE SET document = excluded.document`,

  // A store of layout 1.
  readFirstRings: `SELECT id, key, ${NOW} AS now FROM recruiting_token_ring ORDER BY id`,
  readFirstSets: 'SELECT * FROM recruiting_token_set ORDER BY id',
  readFirstPairs: 'SELECT * FROM recruiting_token_pair ORDER BY id',
  readFirstAttempts: 'SELECT * FROM recruiting_token_attempt ORDER BY id',
  readFirstFingerprints: 'SELECT * FROM recruiting_token_fingerprint ORDER BY ring_id, generation',
  dropFirstTables: `DROP TABLE ${FIRST_TABLES.join(', ')}`,
  renewLayout: `UPDATE recruiting_token_store SET layout = ${LAYOUT}`,

  findPageTable: `
    SELECT tablename FROM pg_catalog.pg_tables
    WHERE tablename = 'recruiting_page_budget' AND schemaname = ANY (current_schemas(false))`,
  createPageTable: CREATE_PAGE_TABLE,
  // In the order of the callers, because two that lock the same rows in another order would wait for each other.
  takePages: `
    INSERT INTO recruiting_page_budget AS budget (caller, full_at)
    SELECT caller, ${STATEMENT_NOW} - $4::float8 + pages * 60000 / $3::float8
    FROM unnest($1::text[], $2::float8[]) AS spent (caller, pages) ORDER BY caller
    ON CONFLICT (caller) DO UPDATE
      SET full_at = excluded.full_at
        + least(${LONGEST_DEBT_MS}, greatest(0, budget.full_at - ${STATEMENT_NOW} + $4::float8))
    RETURNING caller, $3::float8 * (1 - (full_at - ${STATEMENT_NOW}) / 60000) AS pages_left`,
  dropFullBudgets: `
    DELETE FROM recruiting_page_budget WHERE caller IN (
      SELECT caller FROM recruiting_page_budget WHERE full_at < ${STATEMENT_NOW} FOR UPDATE SKIP LOCKED)`,
  /** Every process that listens reads the store then, and saves the pair that it lacks. */
  announce: `SELECT pg_notify('${CHANNEL}', '')`,
} as const;
