/** The tables of a PostgreSQL store are damaged while the answer to an exchange is on its way. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAMAGES, runIn } from '../support/postgres/damage.ts';
import { startDamagedWorld, type Replica } from '../support/postgres/damaged-world.ts';
import { startPostgres, type PostgresServer } from '../support/postgres/server.ts';
import { eventually } from '../support/tokens/fault-world.ts';

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.close());

test('a pair that arrives when the store was altered goes to the rescue file, not the pair before it', async () => {
  await using world = await startDamagedWorld(server);
  const [gateway] = (await world.gateways(1)) as [Replica];
  const answer = world.holdAnswer();
  const received = gateway.receive();
  await answer.arrived;
  await using damage = await begin(
    world.url,
    `SELECT * FROM recruiting_token_store FOR UPDATE; ${DAMAGES['the document altered']!('')}`,
  );
  answer.release();
  await eventually(async () => expect(await damage.waiting()).toBe(1));
  await damage.commit();

  await received;
  await gateway.stop();

  expect(await gateway.place()).toBe('rescue file');
  expect((await world.tokens(0, 'recover', '--rebuild')).code).toBe(0);
  expect(await gateway.place()).toBe('store');
});

test('a pair that arrives while the store is read, and cannot be read then, is not replaced in the rescue file', async () => {
  await using world = await startDamagedWorld(server);
  const [gateway] = (await world.gateways(1)) as [Replica];
  const answer = world.holdAnswer();
  const received = gateway.receive();
  await answer.arrived;
  // Its readers and writers wait until the table is gone.
  await using damage = await begin(world.url, 'DROP TABLE recruiting_token_document');
  await server.query('NOTIFY recruiting_tokens');
  await eventually(async () => expect(await damage.waiting()).toBe(1));
  answer.release();
  await received;
  await damage.commit();

  await eventually(() => expect(world.alarms()).toContain('is held in memory'));
  await eventually(async () => expect(await gateway.place()).toBe('rescue file'));
  await gateway.stop();

  expect(await gateway.place()).toBe('rescue file');
});

test.each([
  [
    'without its constraint',
    'ALTER TABLE recruiting_token_document DROP CONSTRAINT recruiting_token_document_pkey',
  ],
  [
    'with a constraint of somebody else',
    'ALTER TABLE recruiting_token_document ADD CHECK (false) NOT VALID',
  ],
])(
  'a store %s, which can be read but not take the pair, is reported with the way back',
  async (_, statement) => {
    await using world = await startDamagedWorld(server);
    const [gateway] = (await world.gateways(1)) as [Replica];
    const answer = world.holdAnswer();
    const received = gateway.receive();
    await answer.arrived;
    await runIn(server, world.url, () => statement);
    answer.release();
    await received;
    await gateway.stop();
    expect(await gateway.place()).toBe('rescue file');

    const recovered = await world.tokens(0, 'recover');
    expect(recovered.code).toBe(1);
    expect(recovered.stderr).toMatch(/does not take the next pair[^]*`tokens recover --rebuild`/);
    expect((await world.tokens(0, 'recover', '--rebuild')).code).toBe(0);
    expect(await gateway.place()).toBe('store');
    const next = await gateway.restart();
    if ('refused' in next) throw new Error(next.refused);
    await next.refresh();
    expect(world.outcomes()).toEqual(Array(4).fill('answered'));
  },
);

async function begin(url: string, statement: string) {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`BEGIN; ${statement}`);
  return {
    [Symbol.asyncDispose]: () => client.end(),
    commit: () => client.query('COMMIT'),
    /** How many sessions of the store wait for a lock. */
    waiting: async () => {
      const { rows } = await client.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = current_user",
      );
      return rows.length;
    },
  };
}
