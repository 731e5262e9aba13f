import type { Client, DatabaseError, Pool, PoolClient } from 'pg';
import type { Clock } from '../../../clock.ts';
import { StoreUnavailableError } from '../token-store.ts';
import { CHANNEL, STATEMENTS, type Row, type StatementName, type Value } from './statements.ts';

/** A database server, as far as the token store needs it. A simulated one can stand in for it. */
export interface Database {
  /**
   * Runs `work` in one transaction, which needs nothing of the session: a transaction pooler can be between.
   *
   * @throws StoreUnavailableError if the server cannot be reached, or the connection ended; also at the end of the
   *   transaction, and then it may have been committed
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
        await ask(client, BEGIN[kind]);
        const result = await work((name, values) => ask(client, STATEMENTS[name], values));
        await ask(client, 'COMMIT');
        isClean = true;
        return result;
      } finally {
        // To close the connection ends its transaction too.
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
    // A connection that ends while nobody uses it is replaced by the next call.
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

/** Whether this is a session of its own. Behind a transaction pooler it is not, and the store is only polled. */
async function listenIn(client: Client): Promise<boolean> {
  try {
    const [row] = await ask(client, 'SELECT pg_backend_pid() AS pid');
    const { processID } = client as unknown as { processID: number };
    if (row?.['pid'] === processID) {
      await ask(client, `LISTEN ${CHANNEL}`);
      return true;
    }
    await client.end();
    return false;
  } catch {
    await client.end().catch(() => {});
    return true;
  }
}

async function ask(
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

/** The modes between `disable` and `verify-full` check nothing, or less than one would expect. */
function withVerifiedTls(url: string): string {
  const parsed = new URL(url);
  const mode = parsed.searchParams.get('sslmode');
  if (mode === null || mode === 'disable' || mode === 'no-verify') return url;
  parsed.searchParams.set('sslmode', 'verify-full');
  return parsed.href;
}

/** For the operator: what happened, and what to do. */
function explained(error: unknown): Error {
  const { code = '', message, severity } = error as Partial<DatabaseError> & Error;
  const said = MESSAGES[code] ?? (/SSL/.test(message) ? NO_TLS : undefined);
  if (said !== undefined) return new Error(said, { cause: error });
  if (/CERT|SIGNATURE|ALTNAME/.test(code)) {
    const advice = 'give its certificate authority with sslrootcert in TOKEN_STORE';
    return new Error(`the certificate of the database server is not trusted (${code}): ${advice}`);
  }
  // Only errors of the server have a severity. The others are of the connection.
  const isPassing = severity === undefined || /^(08|53|57|55|40|25006|58|XX)/.test(code);
  if (!isPassing) return new Error(`${message} (${code})`, { cause: error });
  return new StoreUnavailableError(PASSING[code] ?? message, { cause: error });
}

const NO_TLS =
  'the database server does not offer TLS, and TOKEN_STORE asks for it: configure TLS there, or set sslmode=disable';

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
