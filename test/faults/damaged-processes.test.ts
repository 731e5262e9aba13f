/** The tables of a PostgreSQL store are damaged under a gateway that is a process of its own. */
import { expect, test } from 'vitest';
import { DAMAGES, runIn } from '../support/postgres/damage.ts';
import { allServe, startReplicaWorld } from '../support/postgres/replicas.ts';
import { eventually } from '../support/tokens/fault-world.ts';

test('a gateway whose tables are emptied, whose pair is deleted and whose tables are dropped loses nothing by SIGTERM or kill -9', async () => {
  await using world = await startReplicaWorld();
  const { env, postgres } = world;
  const serve = () => world.serve({ SHUTDOWN_DELAY_MS: '0' });
  const hurt = (name: string) => runIn(postgres, env.TOKEN_STORE, DAMAGES[name]!);
  const status = () => world.tokens(['status']);
  expect((await world.tokens(['import', world.sandbox.tokenLink])).code).toBe(0);

  const emptied = await serve();
  await allServe([emptied]);
  await hurt('all tables truncated');
  await postgres.query('NOTIFY recruiting_tokens');
  await emptied.printed(/FATAL: The token store answers, and can no longer be read/);
  await allServe([emptied]);
  expect(await emptied.stop()).toMatchObject({ code: 0, signal: null });
  expect(world.rescued()).toHaveLength(1);
  expect((await status()).stdout).toMatch(/Rescue file[^]*`tokens recover`/);

  const filled = await serve();
  await filled.printed(/a token pair was saved from a rescue file/);
  await allServe([filled]);
  expect(await filled.stop()).toMatchObject({ code: 0, signal: null });
  expect(world.rescued()).toEqual([]);
  expect((await status()).code).toBe(0);

  const dropped = await serve();
  await allServe([dropped]);
  await hurt('the table document dropped');
  await postgres.query('NOTIFY recruiting_tokens');
  await eventually(() => expect(world.rescued()).toHaveLength(1));
  await dropped.kill();
  await expect(serve()).rejects.toThrow(/cannot be read: [^]*`tokens recover`/);
  expect((await world.tokens(['recover'])).code).toBe(0);

  const last = await serve();
  world.expire();
  await allServe([last]);
  await eventually(() => expect(world.rescued()).toEqual([]));
  expect(world.outcomes()).toEqual(['answered', 'answered']);
});
