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

tokenStoreContract('postgres', async () => open(await server.emptyStore()));
tokenStoreContract('postgres, sealed, through a transaction pooler', async () =>
  open(throughPooler(await server.emptyStore()), createSealer([randomBytes(32)])),
);

function throughPooler(url: string): string {
  return url.replace(`:${server.port}/`, `:${pooler.port}/`);
}
