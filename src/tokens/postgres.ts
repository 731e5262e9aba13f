import type { ClientConfig, DatabaseError } from 'pg';
import type { Sealer } from './seal.ts';
import { StoreUnavailable, type Reading, type TokenStore } from './store.ts';

/**
 * A store that replicas share. Nothing is kept in a session, so a transaction pooler may be between. Each transaction has
 * a connection of its own: there are a few for each refresh, and one in half a minute.
 *
 * @param url with everything that the driver reads of it: user, password, sslmode, sslrootcert and others
 */
export function openPostgresStore(url: string, sealer: Sealer): TokenStore {
  const settings: ClientConfig = {
    connectionString: url,
    application_name: 'recruiting-subgraph',
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: ANSWER_MS,
    keepAlive: true,
  };
  const transaction = <T>(work: (run: Run) => Promise<T>) => transactionOf(settings, work);
  return {
    description: describe(url),
    read: () =>
      transaction((run) => found(run, sealer, READ)).catch((error: unknown) => {
        if (!isMissingTable(error)) throw error;
        return transaction((run) => found(run, sealer, READ_NOTHING));
      }),
    update: async (rule) => {
      const once = () =>
        transaction(async (run) => {
          // Without a row, `FOR UPDATE` would lock nothing, and two first imports would both succeed.
          await run(INSERT);
          const { state, now } = await found(run, sealer, LOCK);
          const { next, result } = rule(state, now);
          if (next) await run(WRITE, [sealer.seal(next)]);
          return result;
        });
      return once().catch(async (error: unknown) => {
        if (isMissingTable(error)) await transaction((run) => run(CREATE));
        // After a lost connection the outcome of the commit is unknown: rules may be run again.
        else if (!(error instanceof StoreUnavailable)) throw error;
        return once();
      });
    },
  };
}

const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now';
// One row, also where the table has none.
const READ = `SELECT (SELECT sealed FROM recruiting_tokens) AS sealed, ${NOW}`;
const LOCK = `SELECT sealed, ${NOW} FROM recruiting_tokens FOR UPDATE`;
const READ_NOTHING = `SELECT NULL AS sealed, ${NOW}`;
const INSERT = 'INSERT INTO recruiting_tokens VALUES (1, NULL) ON CONFLICT DO NOTHING';
const WRITE = 'UPDATE recruiting_tokens SET sealed = $1';
// Concurrent `CREATE TABLE IF NOT EXISTS` can still violate a unique index of the catalog.
const CREATE = `
  SELECT pg_advisory_xact_lock(7235114);
  CREATE TABLE IF NOT EXISTS recruiting_tokens (id int PRIMARY KEY CHECK (id = 1), sealed text)`;

async function found(run: Run, sealer: Sealer, text: string): Promise<Reading> {
  const [row] = await run(text);
  const { sealed, now } = row as { sealed: string | null; now: number };
  return { state: sealed === null ? null : sealer.open(sealed), now };
}

type Run = (text: string, values?: readonly string[]) => Promise<readonly object[]>;

const CONNECT_MS = 3_000;
const STATEMENT_MS = 3_000;
/** The server may be unable to answer at all. */
const ANSWER_MS = 4_000;
// A process that was stopped within a transaction must not keep the others waiting. The server's default for
// synchronous_commit may have been changed to one that loses commits in a crash.
const BEGIN = `
  BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
  SET LOCAL statement_timeout = ${STATEMENT_MS};
  SET LOCAL idle_in_transaction_session_timeout = ${STATEMENT_MS};
  SET LOCAL synchronous_commit = on`;

async function transactionOf<T>(
  settings: ClientConfig,
  work: (run: Run) => Promise<T>,
): Promise<T> {
  // Loaded only here: a gateway with another store does not need it.
  const pg = await import('pg');
  const client = new pg.Client(settings);
  // The call that waits, or the next one, rejects with it too.
  client.on('error', () => {});
  const run: Run = async (text, values) => {
    const { rows } = await explaining(client.query<object>(text, values && [...values]));
    return rows;
  };
  try {
    await explaining(client.connect());
    await run(BEGIN);
    const result = await work(run);
    await run('COMMIT');
    return result;
  } finally {
    // That ends an open transaction too. Not awaited: the server may not answer any more.
    void client.end().catch(() => {});
  }
}

function isMissingTable(error: unknown): boolean {
  return ((error as Error).cause as Partial<DatabaseError> | undefined)?.code === '42P01';
}

function explaining<T>(call: Promise<T>): Promise<T> {
  return call.catch((error: unknown) => {
    throw explained(error);
  });
}

/** Only errors of the server have a severity. The others are of the connection, and may pass. */
function explained(error: unknown): Error {
  const { code = '', message = '', severity } = error as Partial<DatabaseError>;
  // 25P03 and 25P04 meet a process that stood still within its transaction.
  const isPassing = severity === undefined || /^(08|53|57|55|40|25006|25P0[34]|58|XX)/.test(code);
  // Without a message where all addresses of a host refuse.
  const why = message.includes(code) ? message : `${message} (${code})`.trim();
  return isPassing ? new StoreUnavailable(why, { cause: error }) : new Error(why, { cause: error });
}

function describe(url: string): string {
  const { username, host, pathname } = new URL(url);
  return `postgres://${username && `${username}@`}${host}${pathname}`;
}
