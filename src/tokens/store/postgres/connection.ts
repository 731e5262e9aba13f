import type { Client, DatabaseError, Pool, PoolClient } from 'pg';
import type { Clock } from '../../../clock.ts';
import { StoreUnavailableError } from '../token-store.ts';

/** A database server, as far as the token store needs it. A simulated one can stand in for it. */
export interface Database {
  /**
   * Runs `work` in one transaction, which needs no state of the session, so that a transaction pooler can be between.
   *
   * @throws StoreUnavailableError if the server cannot be reached, or the connection ended; during COMMIT,
   *   the transaction may have been committed
   */
  transaction<T>(kind: 'read' | 'write', work: (run: Run) => Promise<T>): Promise<T>;
  /** Calls `onChange` after an announced change, each connect and each lost connection. Ends with `close`. */
  listen(onChange: () => void): void;
  close(): Promise<void>;
}

export type Run = (statement: StatementName, values?: readonly Value[]) => Promise<Row[]>;

const CONNECT_MS = 3_000;
const STATEMENT_MS = 3_000;
/** The server may be unable to answer at all. */
const ANSWER_MS = 4_000;
/** Short: another process may wait for this one to save a pair that the server has lost (token-refresher.ts). */
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 1_000;

// A process that was stopped in a transaction must not keep the others waiting.
const LIMITS = `
  SET LOCAL statement_timeout = ${STATEMENT_MS};
  SET LOCAL idle_in_transaction_session_timeout = ${STATEMENT_MS};`;
const BEGIN = {
  read: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${LIMITS}`,
  // The default may have been changed to one that loses commits when the server crashes.
  write: `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ${LIMITS} SET LOCAL synchronous_commit = on;`,
};

/** @param url with everything that the driver reads of it: user, password, sslmode, sslrootcert and others */
export function connectPostgres(url: string, clock: Clock): Database {
  const settings = {
    connectionString: withVerifiedTls(url),
    application_name: 'recruiting-subgraph',
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: ANSWER_MS,
    keepAlive: true,
  };
  const closing = new AbortController();
  let opening: Promise<Pool> | undefined;
  let listener: Client | undefined;

  return {
    transaction: async (kind, work) => {
      const client = await connected();
      let isClean = false;
      try {
        await runQuery(client, BEGIN[kind]);
        const result = await work((name, values) => runQuery(client, STATEMENTS[name], values));
        await runQuery(client, 'COMMIT');
        isClean = true;
        return result;
      } finally {
        // Closing the connection ends its transaction too.
        client.release(!isClean);
      }
    },
    listen: (onChange) => void keepListening(onChange).catch(() => {}),
    close: async () => {
      closing.abort();
      await Promise.allSettled([listener?.end(), opening?.then((pool) => pool.end())]);
    },
  };

  async function connected(): Promise<PoolClient> {
    if (closing.signal.aborted) throw new StoreUnavailableError('the token store is closed');
    try {
      const pool = await (opening ??= open());
      return await pool.connect();
    } catch (error) {
      throw explained(error);
    }
  }

  async function open(): Promise<Pool> {
    // Loaded only here: a gateway with another store does not need it.
    const pg = await import('pg');
    const pool = new pg.Pool({ ...settings, max: 4, allowExitOnIdle: true });
    // The next call replaces an idle connection that ends.
    pool.on('error', () => {});
    pool.on('connect', (client) => client.on('error', () => {}));
    return pool;
  }

  async function keepListening(onChange: () => void): Promise<void> {
    for (let failures = 0; !closing.signal.aborted;) {
      const session = await openSession(onChange).catch(() => undefined);
      failures = session ? 0 : failures + 1;
      if (session) {
        const listens = await session.listens;
        onChange();
        if (!listens) return;
        await session.ended;
        if (!closing.signal.aborted) onChange();
      }
      const patience = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** failures);
      await clock.sleep(patience * (0.5 + Math.random() / 2), closing.signal);
    }
  }

  async function openSession(onChange: () => void) {
    const pg = await import('pg');
    const client = new pg.Client(settings);
    const ended = new Promise<void>((done) => client.once('end', done));
    client.on('error', () => void client.end().catch(() => {}));
    client.on('notification', onChange);
    listener = client;
    await client.connect();
    const listens = listenIn(client);
    return { ended, listens };
  }
}

/** Starts to listen. @returns false if a transaction pooler shares the session, so that the store can only be polled */
async function listenIn(client: Client): Promise<boolean> {
  try {
    const [row] = await runQuery(client, 'SELECT pg_backend_pid() AS pid');
    const { processID } = client as unknown as { processID: number };
    if (row?.['pid'] === processID) {
      await runQuery(client, `LISTEN ${CHANNEL}`);
      return true;
    }
    await client.end();
    return false;
  } catch {
    await client.end().catch(() => {});
    return true;
  }
}

async function runQuery(
  client: Pick<Client, 'query'>,
  text: string,
  values?: readonly Value[],
): Promise<Row[]> {
  try {
    const { rows } = await client.query<Row>(text, values && [...values]);
    return rows;
  } catch (error) {
    throw explained(error);
  }
}

/** The modes between `disable` and `verify-full` check nothing, or less than their names promise. */
function withVerifiedTls(url: string): string {
  const parsed = new URL(url);
  const mode = parsed.searchParams.get('sslmode');
  if (mode === null || mode === 'disable' || mode === 'no-verify') return url;
  parsed.searchParams.set('sslmode', 'verify-full');
  return parsed.href;
}

/** Turns an error of the driver into one that tells the operator what happened and what to do. */
function explained(error: unknown): Error {
  const { code = '', message, severity } = error as Partial<DatabaseError> & Error;
  const explanation = MESSAGES[code] ?? (/SSL/.test(message) ? NO_TLS : undefined);
  if (explanation !== undefined) return new Error(explanation, { cause: error });
  if (/CERT|SIGNATURE|ALTNAME/.test(code)) {
    const advice = 'give its certificate authority with sslrootcert in TOKEN_STORE';
    return new Error(`the certificate of the database server is not trusted (${code}): ${advice}`);
  }
  // Only errors of the server have a severity. The others are errors of the connection.
  const isPassing = severity === undefined || /^(08|53|57|55|40|25006|58|XX)/.test(code);
  if (!isPassing) return new Error(`${message} (${code})`, { cause: error });
  return new StoreUnavailableError(PASSING[code] ?? message, { cause: error });
}

const NO_TLS =
  'the database server does not offer TLS, and TOKEN_STORE requires it: configure TLS there, or set sslmode=disable';

const MESSAGES: Record<string, string> = {
  ENOENT: 'a file that TOKEN_STORE names (sslrootcert, sslcert or sslkey) is not there',
  EACCES: 'a file that TOKEN_STORE names (sslrootcert, sslcert or sslkey) cannot be read',
  '28P01': 'the database server refuses the user or the password of TOKEN_STORE',
  '28000': 'the database server refuses the user of TOKEN_STORE, or a connection from here',
  '3D000': 'the database server has no database of the name in TOKEN_STORE: create it',
  '42P01': 'tables of it are missing',
  '3F000': 'the database has no schema for the user of TOKEN_STORE: create it, owned by that user',
  '42501': 'the database user lacks a right that the token store needs (docs/tokens.md lists them)',
};

const PASSING: Record<string, string> = {
  ENOTFOUND: 'the host of the database server was not found',
  EAI_AGAIN: 'the host of the database server cannot be looked up now',
  ECONNREFUSED: 'nothing listens at the address of the database server',
  '25006':
    'the database server is a standby, which cannot be written: TOKEN_STORE has to name the primary',
};

export type Value = string | number | boolean | null | readonly string[];
export type Row = Record<string, unknown>;

export type StatementName = keyof typeof STATEMENTS;

/** Layout 1 spread the content over `FIRST_TABLES`. */
export const LAYOUT = 2;

/** Without the table of page budgets, which is created whenever it is missing. */
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
const CHANNEL = 'recruiting_tokens';

/** An arbitrary key of an advisory lock: only one replica at a time creates the tables. */
const CREATING = 7_235_114;

const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::float8';

/**
 * Identifies this table on this run of its server: a failover, a restart, or a copy that replaces the table has another
 * era. (The row is written once, so its xmin changes only when it is written anew. A copy of the whole database has the
 * same row in the same table.)
 */
const ERA = `
  concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),
    (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()), tableoid, xmin) AS era`;

/**
 * All SQL of the PostgreSQL store. Statements are short and have names, so that a database without SQL can imitate the
 * server. Times are milliseconds since 1970 by the server's clock, which is the only clock.
 */
const STATEMENTS = {
  lockCreation: `SELECT pg_advisory_xact_lock(${CREATING})`,
  // Not to_regclass, whose answer may be from before the lock.
  findTables: `
    SELECT DISTINCT tablename FROM pg_catalog.pg_tables
    WHERE tablename IN (${TABLE_NAMES}) AND schemaname = ANY (current_schemas(false))`,
  /** Creates only those that are missing. */
  createTables: `
    CREATE TABLE IF NOT EXISTS recruiting_token_store (layout int PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS recruiting_token_document (
      id int PRIMARY KEY CHECK (id = 1), document text NOT NULL);`,

  insertLayout: `INSERT INTO recruiting_token_store VALUES (${LAYOUT})`,
  // Their indexes and sequences keep their names; PostgreSQL chooses other names for the new ones.
  renameTables: `
    DO $$
    DECLARE
      damaged record;
      ending text := '_damaged_' || to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISS');
    BEGIN
      FOR damaged IN SELECT schemaname, tablename FROM pg_catalog.pg_tables
        WHERE tablename IN (${TABLE_NAMES}) AND schemaname = ANY (current_schemas(false))
      LOOP
        EXECUTE format('ALTER TABLE %I.%I RENAME TO %I', damaged.schemaname, damaged.tablename, damaged.tablename || ending);
      END LOOP;
    END $$`,

  /** Held to the end of the transaction: all writers take turns. */
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

  /** Every listening process then reads the store, and saves a pair that the store lacks. */
  announce: `SELECT pg_notify('${CHANNEL}', '')`,
} as const;
