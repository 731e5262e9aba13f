/** The tables of a PostgreSQL store are damaged while gateways run. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAMAGES, REPAIRS, runIn } from '../support/postgres/damage.ts';
import { startDamagedWorld, type Place, type Replica } from '../support/postgres/damaged-world.ts';
import { startPostgres, type PostgresServer } from '../support/postgres/server.ts';
import { eventually } from '../support/tokens/fault-world.ts';

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.close());

type Step = 'repair' | 'recover' | 'recover --rebuild';

/** Where the pair is after SIGTERM or kill -9, and what it takes until a gateway starts again. */
const WAYS: Record<string, readonly [Place, ...Step[]]> = {
  'the schema dropped': ['rescue file', 'repair'],
  'all tables dropped': ['rescue file'],
  'all tables truncated': ['rescue file'],
  'the table store dropped': ['rescue file', 'recover'],
  'the table set dropped': ['rescue file', 'recover', 'recover --rebuild'],
  'the table pair dropped': ['rescue file', 'recover'],
  'the table attempt dropped': ['rescue file', 'recover'],
  'the table ring dropped': ['rescue file', 'recover'],
  'the table fingerprint dropped': ['rescue file', 'recover'],
  'the table store truncated': ['rescue file', 'recover'],
  'the table set truncated': ['store'],
  'the table pair truncated': ['store'],
  'the table attempt truncated': ['store'],
  'the table ring truncated': ['rescue file', 'recover'],
  'the table fingerprint truncated': ['store'],
  'the newest pair deleted': ['store'],
  'all pairs and the set deleted': ['store'],
  'the head moved back': ['store'],
  'the head moved ahead': ['rescue file', 'recover', 'recover --rebuild'],
  'the newest pair no head any more': ['store'],
  'the newest pair emptied': ['store'],
  'the newest pair altered': ['rescue file', 'recover', 'recover --rebuild'],
  'the name of the set altered': ['rescue file', 'recover', 'recover --rebuild'],
  'the service of the set altered': ['rescue file', 'recover', 'recover --rebuild'],
  'the key of the fingerprints altered': ['rescue file', 'recover', 'recover --rebuild'],
  'a newer layout': ['rescue file', 'repair'],
  'a column dropped': ['rescue file', 'recover', 'recover --rebuild'],
  'the rights revoked': ['rescue file', 'repair'],
};

test.concurrent.each(Object.entries(WAYS))(
  'with %s under running gateways the newest pair survives SIGTERM and kill -9, and messages lead back',
  async (damage, [place, ...way]) => {
    await using world = await startDamagedWorld(server);
    // It may be refused as a deadlock with a gateway that reads.
    const hurt = () => eventually(() => runIn(server, world.url, DAMAGES[damage]!));
    const [ended, noticing, killed] = (await world.gateways(3)) as [Replica, Replica, Replica];

    await hurt();
    await ended.stop();
    expect(await ended.place()).toBe(place);
    await hurt();
    await noticing.notices(place);
    await noticing.stop();
    expect(await noticing.place()).toBe(place);
    await hurt();
    await killed.notices(place);
    killed.kill();

    const status = await world.tokens(2, 'status');
    expect(status.code).toBe(place === 'store' ? 0 : 1);
    if (place === 'rescue file') {
      expect(status.stdout + status.stderr).toMatch(/rescue file[^]*`tokens recover`/i);
      expect(world.alarms()).toMatch(/can no longer be read[^]*`tokens recover`/);
    }
    let next = await killed.restart();
    for (const step of way) {
      expect(next).toMatchObject({ refused: expect.stringContaining('`tokens recover`') });
      if (step === 'repair') await runIn(server, world.url, REPAIRS[damage]!);
      else {
        const isLast = step === way.at(-1);
        const { code, stderr } = await world.tokens(2, ...step.split(' '));
        expect(code).toBe(isLast ? 0 : 1);
        expect(stderr).toMatch(
          isLast ? /generation 3|made again/ : /`tokens recover --rebuild` renames/,
        );
      }
      next = await killed.restart();
    }
    if ('refused' in next) throw new Error(next.refused);
    expect(await next.place()).toBe('store');
    await next.refresh();
    expect(world.outcomes()).toEqual(['answered', 'answered', 'answered']);
  },
);
