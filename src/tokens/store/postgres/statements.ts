import { OPEN_OUTCOMES, READ_OUTCOMES } from '../rows.ts';

/*
 * All SQL of the PostgreSQL store. Each statement is short, and has a name, so that another database can stand in for
 * the server: it only has to know these statements.
 *
 * Times are milliseconds since 1970 by the server's clock, which is the only clock.
 */

export type Value = string | number | boolean | null | readonly string[];
export type Row = Record<string, unknown>;

export type StatementName = keyof typeof STATEMENTS;

/** What `findTables` returns if there are tables, and what is written by `createTables`. */
export const LAYOUT = 1;

/** All but that of the pages of callers, which is made when it is missing. */
export const TABLES = [
  'recruiting_token_store',
  'recruiting_token_set',
  'recruiting_token_pair',
  'recruiting_token_attempt',
  'recruiting_token_ring',
  'recruiting_token_fingerprint',
] as const;

const TABLE_NAMES = TABLES.map((name) => `'${name}'`).join(', ');

const [OPEN, READ] = [OPEN_OUTCOMES, READ_OUTCOMES].map((outcomes) =>
  outcomes.map((outcome) => `'${outcome}'`).join(', '),
);

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
  /** Whether anything is in the tables, if all are there. */
  findRows: `${TABLES.map((name) => `SELECT 1 AS found FROM ${name}`).join(' UNION ALL ')} LIMIT 1`,
  /** Those that are missing. */
  createTables: `
    CREATE TABLE IF NOT EXISTS recruiting_token_store (layout int PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS recruiting_token_set (
      id int PRIMARY KEY, name text NOT NULL UNIQUE, base_url text NOT NULL, head int NOT NULL,
      lost boolean NOT NULL, moved_to text, withdrawn boolean NOT NULL,
      claim text, claim_at float8, claim_until float8, claim_ended boolean NOT NULL);
    CREATE TABLE IF NOT EXISTS recruiting_token_pair (
      id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      set_id int NOT NULL REFERENCES recruiting_token_set (id), generation int NOT NULL, attempt text NOT NULL,
      pair text NOT NULL, saved_at float8 NOT NULL, imported boolean NOT NULL, was_head boolean NOT NULL, UNIQUE (set_id, generation, attempt));
    CREATE TABLE IF NOT EXISTS recruiting_token_attempt (
      id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, attempt text NOT NULL, set_name text NOT NULL,
      generation int NOT NULL, at float8 NOT NULL, outcome text NOT NULL, latency_ms int, replica text NOT NULL);
    CREATE TABLE IF NOT EXISTS recruiting_token_ring (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL);
    CREATE TABLE IF NOT EXISTS recruiting_token_fingerprint (
      ring_id int NOT NULL REFERENCES recruiting_token_ring (id), fingerprint text NOT NULL,
      generation int NOT NULL, PRIMARY KEY (ring_id, fingerprint));${CREATE_PAGE_TABLE}`,

  /** Those that were moved back. */
  restoreHeads: `
    UPDATE recruiting_token_set AS damaged SET head = newest.generation
    FROM (
      SELECT set_id, max(generation) AS generation FROM recruiting_token_pair WHERE was_head GROUP BY set_id
    ) AS newest
    WHERE newest.set_id = damaged.id AND newest.generation > damaged.head
    RETURNING damaged.id`,
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
  readRings: `SELECT id, key, ${NOW} AS now FROM recruiting_token_ring ORDER BY id`,
  readSets: `
    SELECT id, name, base_url, head, lost, moved_to, withdrawn, claim, claim_at, claim_until, claim_ended
    FROM recruiting_token_set ORDER BY id DESC`,
  readPairs: `
    SELECT set_id, generation, attempt, pair, saved_at, imported, was_head FROM recruiting_token_pair
    ORDER BY id`,
  readAttempts: `
    SELECT at, generation, attempt, outcome, latency_ms, replica, set_name FROM recruiting_token_attempt
    WHERE outcome IN (${READ}) OR attempt = $1 ORDER BY id`,
  findFingerprints: `
    SELECT generation FROM recruiting_token_fingerprint WHERE fingerprint = ANY ($1::text[])
    ORDER BY ring_id LIMIT 1`,
  readFingerprints: `
    SELECT ring_id, fingerprint, generation FROM recruiting_token_fingerprint ORDER BY ring_id, generation`,
  readHistory: `
    SELECT at, generation, attempt, outcome, latency_ms, replica, set_name FROM recruiting_token_attempt
    ORDER BY id DESC LIMIT $1`,

  insertSet: `
    INSERT INTO recruiting_token_set (
      id, name, base_url, head, lost, moved_to, withdrawn, claim, claim_at, claim_until, claim_ended)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
  // The claim is the lock: this changes nothing if another process has moved the head or taken a claim since.
  updateSet: `
    UPDATE recruiting_token_set SET head = $4, lost = $5, moved_to = $6, withdrawn = $7,
      claim = $8, claim_at = $9, claim_until = $10, claim_ended = $11
    WHERE id = $1 AND name = $2 AND base_url = $3 AND head = $12 AND claim IS NOT DISTINCT FROM $13
    RETURNING id`,
  insertPair: `
    INSERT INTO recruiting_token_pair (
      set_id, generation, attempt, pair, saved_at, imported, was_head)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (set_id, generation, attempt) DO UPDATE SET
      pair = excluded.pair, saved_at = excluded.saved_at, imported = excluded.imported,
      was_head = excluded.was_head
    WHERE recruiting_token_pair.pair = '' OR NOT recruiting_token_pair.was_head`,
  sealPair: `
    UPDATE recruiting_token_pair SET pair = $4
    WHERE set_id = $1 AND generation = $2 AND attempt = $3`,
  dropPairs: `
    DELETE FROM recruiting_token_pair WHERE set_id = $1 AND generation < $2 AND pair = ''`,
  insertAttempt: `
    INSERT INTO recruiting_token_attempt (attempt, set_name, generation, at, outcome, replica)
    VALUES ($1, $2, $3, $4, $5, $6)`,
  dropAttempts: `
    DELETE FROM recruiting_token_attempt WHERE outcome NOT IN (${READ})
    AND id <= (SELECT max(id) FROM recruiting_token_attempt) - $1`,
  endAttempt: `
    UPDATE recruiting_token_attempt SET outcome = $2, latency_ms = $3
    WHERE attempt = $1 AND outcome IN (${OPEN})`,
  insertRing: 'INSERT INTO recruiting_token_ring (key) VALUES ($1) RETURNING id',
  sealRing: 'UPDATE recruiting_token_ring SET key = $2 WHERE id = $1',
  insertFingerprint: `
    INSERT INTO recruiting_token_fingerprint VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,

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
