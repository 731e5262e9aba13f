/** The tables of a PostgreSQL store are damaged while gateways run. */
import { isDeepStrictEqual as isEqual } from 'node:util';
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
  'the table document dropped': ['rescue file', 'recover'],
  'the table store truncated': ['rescue file', 'recover'],
  'the table document truncated': ['rescue file', 'recover'],
  'the document emptied': ['rescue file', 'recover', 'recover --rebuild'],
  'the document altered': ['rescue file', 'recover', 'recover --rebuild'],
  'a newer layout': ['rescue file', 'repair'],
  'a column dropped': ['rescue file', 'recover', 'recover --rebuild'],
  'the rights revoked': ['rescue file', 'repair'],
};

/** The damages with which all endings are tried: the first of each way back. */
const WITH_ALL_ENDINGS = new Set(
  Object.entries(WAYS)
    .filter(([, way], at, all) => at === all.findIndex(([, other]) => isEqual(other, way)))
    .map(([damage]) => damage),
);

test.concurrent.each(Object.entries(WAYS))(
  'with %s under running gateways the newest pair survives their end, and messages lead back',
  async (damage, [place, ...way]) => {
    await using world = await startDamagedWorld(server);
    // It may be refused as a deadlock with a gateway that reads.
    const hurt = () => eventually(() => runIn(server, world.url, DAMAGES[damage]!));
    const isWhole = WITH_ALL_ENDINGS.has(damage);
    const [killed, ...others] = await world.gateways(isWhole ? 3 : 1);

    if (isWhole) {
      const [ended, noticing] = others as [Replica, Replica];
      await hurt();
      await ended.stop();
      expect(await ended.place()).toBe(place);
      await hurt();
      await noticing.notices(place);
      await noticing.stop();
      expect(await noticing.place()).toBe(place);
    }
    await hurt();
    await killed!.notices(place);
    killed!.kill();

    const status = await world.tokens(0, 'status');
    expect(status.code).toBe(place === 'store' ? 0 : 1);
    const remedy =
      damage === 'a newer layout' ? 'Start the newer version again' : '`tokens recover`';
    if (place === 'rescue file') {
      expect(status.stdout + status.stderr).toMatch(new RegExp(`rescue file[^]*${remedy}`, 'i'));
      expect(world.alarms()).toMatch(/can no longer be read[^]*`tokens recover`/);
    }
    let next = await killed!.restart();
    for (const step of way) {
      expect(next).toMatchObject({ refused: expect.stringContaining(remedy) });
      if (step === 'repair') {
        const { stderr } = await world.tokens(0, 'recover');
        expect(stderr).toMatch(
          new RegExp(`waits in a rescue file[^]*do not remove it[^]*${remedy}`),
        );
        await runIn(server, world.url, REPAIRS[damage]!);
      } else {
        const isLast = step === way.at(-1);
        const { code, stderr } = await world.tokens(0, ...step.split(' '));
        expect(code).toBe(isLast ? 0 : 1);
        expect(stderr).toMatch(
          isLast ? /generation 3|made again/ : /`tokens recover --rebuild` renames/,
        );
      }
      next = await killed!.restart();
    }
    if ('refused' in next) throw new Error(next.refused);
    expect(await next.place()).toBe('store');
    // A pair may be in the store a moment before its process knows that, which exchanges nothing until then.
    await next.settles();
    await next.refresh();
    expect(world.outcomes()).toEqual(['answered', 'answered', 'answered']);
  },
);

test.concurrent(
  'two replicas whose tables were emptied are healed by any command or start, and make one exchange at the next expiry',
  async () => {
    await using world = await startDamagedWorld(server);
    const [first, second] = (await world.gateways(2)) as [Replica, Replica];
    await runIn(server, world.url, DAMAGES['all tables truncated']!);
    await Promise.all([first.notices('rescue file'), second.notices('rescue file')]);
    const recovered = await Promise.all([
      world.tokens(0, 'recover'),
      world.tokens(1, 'recover'),
      world.tokens(2, 'status'),
    ]);
    expect(recovered.map(({ code }) => code)).toEqual([0, 0, expect.any(Number)]);
    await Promise.all([first.notices('store'), second.notices('store')]);
    await Promise.all([first.settles(), second.settles()]);
    await Promise.all([first.refresh(), second.refresh()]);
    expect(world.outcomes()).toEqual(['answered', 'answered', 'answered']);
    expect((await world.tokens(0, 'status')).code).toBe(0);
    await Promise.all([first.stop(), second.stop()]);
    expect(await first.place()).toBe('store');
  },
);

test.concurrent(
  'if no machine has the pair, an emptied store and a rebuilt one take a new token',
  async () => {
    await using world = await startDamagedWorld(server);
    await runIn(server, world.url, DAMAGES['all tables truncated']!);
    const lost = await world.tokens(0, 'recover');
    expect(lost).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/`tokens import <link>`/),
    });
    expect((await world.tokens(0, 'import', world.makeNewSet())).code).toBe(0);
    await runIn(server, world.url, DAMAGES['the document altered']!);
    const link = world.makeNewSet();
    expect(await world.tokens(1, 'import', link)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/machine-1\) has no pair[^]*`tokens recover`/),
    });
    expect(await world.tokens(1, 'recover')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/each machine[^]*`tokens recover --rebuild`/),
    });
    expect(await world.tokens(1, 'recover', '--rebuild')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/were renamed[^]*`tokens import <link>`/),
    });
    expect((await world.tokens(1, 'import', link)).code).toBe(0);
    expect((await world.tokens(1, 'status')).code).toBe(0);
    const schema = new URL(world.url).username;
    const [kept] = await server.query(
      `SELECT count(*) AS tables FROM pg_tables WHERE schemaname = '${schema}' AND tablename ~ '_damaged_'`,
    );
    expect(kept).toEqual({ tables: '2' });
  },
);

test.concurrent(
  'an import into an emptied store does not replace a pair that waits in a rescue file',
  async () => {
    await using world = await startDamagedWorld(server);
    const [gateway] = (await world.gateways(1)) as [Replica];
    await runIn(server, world.url, DAMAGES['all tables truncated']!);
    await gateway.stop();
    expect(await world.tokens(0, 'import', world.unreadLink)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/saved from a rescue file[^]*generation 3\) that is in use/),
    });
    expect(await gateway.place()).toBe('store');
  },
);

test.concurrent(
  'a database that is dropped leaves the pair in the rescue file, and the next start fills a new one',
  async () => {
    await using world = await startDamagedWorld(server, await server.emptyDatabase());
    const [gateway] = (await world.gateways(1)) as [Replica];
    const name = new URL(world.url).pathname.slice(1);
    await server.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await gateway.stop();
    expect(await gateway.place()).toBe('rescue file');
    expect(await gateway.restart()).toMatchObject({
      refused: expect.stringMatching(/no database of the name[^]*create it/),
    });
    await server.query(`CREATE DATABASE ${name} OWNER ${new URL(world.url).username}`);
    const next = await gateway.restart();
    if ('refused' in next) throw new Error(next.refused);
    expect(await next.place()).toBe('store');
    await next.refresh();
  },
);
