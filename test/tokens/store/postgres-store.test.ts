import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { openPostgresStore } from '../../../src/tokens/store/postgres/postgres-store.ts';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import { startPooler, type Pooler } from '../../support/postgres/pooler.ts';
import { startPostgres, type PostgresServer } from '../../support/postgres/server.ts';
import { closing } from './sqlite-support.ts';
import { tokenStoreContract } from './token-store-contract.ts';

let server: PostgresServer;
let pooler: Pooler;

beforeAll(async () => {
  server = await startPostgres();
  pooler = await startPooler(server.port, 'planted-password');
});
afterAll(async () => {
  await pooler.close();
  await server.close();
});

const clock = systemClock;
const open = (url: string, sealer = createSealer([])) =>
  closing(openPostgresStore(url, { sealer, clock }));

/** The address of the store that was made last. */
let newest: string;
const emptyStore = async () => (newest = await server.emptyStore());

/** Attempts are dropped by the distance of their ids. */
const pass = async (attempts: number) => {
  const table = `${new URL(newest).username}.recruiting_token_attempt`;
  const sequence = `pg_get_serial_sequence('${table}', 'id')`;
  await server.query(`SELECT setval(${sequence}, nextval(${sequence}) + ${attempts})`);
};

tokenStoreContract('postgres', async () => open(await emptyStore()), pass);
tokenStoreContract(
  'postgres, sealed, through a transaction pooler',
  async () => open(throughPooler(await emptyStore()), createSealer([randomBytes(32)])),
  pass,
);

function throughPooler(url: string): string {
  return url.replace(`:${server.port}/`, `:${pooler.port}/`);
}
