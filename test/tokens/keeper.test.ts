import { rmSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import type { Clock } from '../../src/clock.ts';
import { emergencyIn } from '../../src/tokens/emergency.ts';
import { PLAIN_WORDING, type Trouble } from '../../src/tokens/health.ts';
import {
  openTokenKeeper,
  type AccessToken,
  type KeeperParts,
  type TokenKeeper,
} from '../../src/tokens/keeper.ts';
import { LinkError } from '../../src/tokens/link.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import type { Exchange, TokenService } from '../../src/tokens/service.ts';
import { endAttempt, takeClaim, type Rule, type State } from '../../src/tokens/state.ts';
import { StoreUnavailable } from '../../src/tokens/store.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { memoryStore } from '../support/gateway/stores.ts';
import { quickFolder } from '../support/quick-folder.ts';
import { VirtualTime } from './simulate/virtual-time.ts';
import { claimOf, exchanged, importOf, LIFE, NOON, pairOf, saveOf, SERVICE } from './values.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test('a pair that another process saves while this one reports an expired token is used, and not exchanged as well', async () => {
  const world = worldOf();
  await world.put(importOf('1'));
  await world.put(claimOf('of another process', 1));
  let others = async () => {
    others = async () => {};
    await world.put((state, now) => saveOf(state!, '2')(state, now));
  };
  const keeper = await world.start({
    store: {
      ...world.store,
      update: async (rule) => {
        await others();
        return world.store.update(rule);
      },
    },
  });
  const refused = await keeper.token();
  const next = await keeper.afterRefusal(refused, 'token_expired', 0);
  expect(next).toEqual({ value: 'access-2', generation: 2 });
  expect(world.sent).toEqual([]);
});

describe('during a slow refresh', () => {
  test('the access token before it is given at once', async () => {
    const world = worldOf(answeredAfter(100_000));
    await world.put(importOf('1'));
    const keeper = await world.start();
    await world.time.pass(1_000);
    expect(world.sent).toEqual(['refresh-1']);
    expect(keeper.token()).toEqual({ value: 'access-1', generation: 1 });
    await world.time.pass(100_000);
    expect(keeper.token()).toEqual({ value: 'access-after refresh-1', generation: 2 });
  });

  test('a caller whose token has expired waits for 30 s, and the pair is saved nevertheless', async () => {
    const world = worldOf(answeredAfter(100_000));
    await world.put(importOf('1'));
    const keeper = await world.start();
    const answer = codeAfter(keeper.afterRefusal(await keeper.token(), 'token_expired', 0));
    await world.time.pass(29_000);
    expect(await answer.soFar()).toBe('waits');
    await world.time.pass(2_000);
    expect(await answer.soFar()).toBe('UPSTREAM_UNREACHABLE');
    await world.time.pass(100_000);
    expect(await world.state()).toMatchObject({ generation: 2, claim: null });
    expect(world.sent).toHaveLength(1);
  });

  test('a caller whose token the refresh has ended gets the new one', async () => {
    const world = worldOf(answeredAfter(5_000));
    await world.put(importOf('1'));
    const keeper = await world.start();
    await world.time.pass(1_000);
    const next = keeper.afterRefusal(await keeper.token(), 'token_revoked', 0);
    await world.time.pass(5_000);
    expect(await next).toMatchObject({ generation: 2 });
    expect(world.sent).toHaveLength(1);
  });

  test('a stop waits for its pair, and for nothing else', async () => {
    const world = worldOf(answeredAfter(100_000));
    await world.put(importOf('1'));
    const keeper = await world.start();
    await world.time.pass(1_000);
    const closed = keeper.close().then(() => world.time.now);
    await world.time.pass(200_000);
    expect(await closed).toBeCloseTo(100_000, -2);
    expect(await world.state()).toMatchObject({ generation: 2 });
  });
});

test('after a refresh without an answer, any refusal of the access token sends the refresh token once more', async () => {
  const answers: Exchange[] = [
    { kind: 'unclear', why: 'cut', answer: null },
    { kind: 'granted', pair: pairOf('2') },
  ];
  const world = worldOf(async () => answers.shift()!);
  await world.put(importOf('1'));
  const keeper = await world.start();
  await world.time.pass(HOUR);
  expect(keeper.health().troubles).toEqual(['uncertain']);
  expect(world.sent).toHaveLength(1);
  const next = await keeper.afterRefusal(await keeper.token(), 'token_revoked', 0);
  expect(next).toEqual({ value: 'access-2', generation: 2 });
  expect(world.sent).toHaveLength(2);
});

describe('at a service that revokes everything once a refresh token is sent twice', () => {
  test.each<Exchange>([{ kind: 'unclear', why: 'cut', answer: null }, { kind: 'invalid-grant' }])(
    'a refresh that ends as $kind is a loss, until new tokens are imported',
    async (ending) => {
      const answers: Exchange[] = [ending, { kind: 'granted', pair: pairOf('3') }];
      const world = worldOf(async () => answers.shift()!, { revokesOnReuse: true });
      await world.put(importOf('1'));
      const keeper = await world.start();
      await world.time.pass(2 * DAY);
      expect(world.sent).toEqual(['refresh-1']);
      expect(keeper.health().troubles).toEqual(['lost']);
      const token = await keeper.token();
      const refused = codeAfter(keeper.afterRefusal(token, 'token_expired', 0));
      await world.time.pass(1_000);
      expect([token.value, await refused.soFar()]).toEqual(['access-1', 'TOKENS_LOST']);
      expect(await keeper.import(pairOf('2'))).toBe('imported');
      await world.time.pass(2_000);
      expect(world.sent).toEqual(['refresh-1', 'refresh-2']);
      expect(keeper.health().troubles).toEqual([]);
      expect(await keeper.token()).toMatchObject({ value: 'access-3' });
    },
  );
});

describe('a service that cannot be asked about an access token', () => {
  const habits = { revokesOnReuse: true };
  const mistake: Exchange = { kind: 'unsent', why: 'status 401 (invalid_client)', isMistake: true };

  test.each<[string, Exchange, string, sent: number]>([
    ['is lost at once if that is refused', { kind: 'invalid-grant' }, 'TOKENS_LOST', 2],
    ['is refused if the next one is refused as well', granted('3'), 'works', 2],
  ])(
    'whose new token stays refused: it is exchanged once, and %s',
    async (_what, answer, end, sent) => {
      const world = worldOf(async () => (world.sent.length > 1 ? answer : granted('2')), habits);
      const keeper = await world.start();
      expect(await keeper.import(pairOf('1'))).toBe('imported');
      const request = async () => {
        let token: AccessToken | undefined = await keeper.token();
        for (let replays = 0; token; replays += 1) {
          token = await keeper.afterRefusal(token, 'token_expired', replays);
        }
      };
      const ended = codeAfter(request());
      await world.time.pass(4_000);
      expect([await ended.soFar(), world.sent.length]).toEqual([end, sent]);
      const again = codeAfter(request());
      await world.time.pass(4_000);
      expect([await again.soFar(), world.sent.length]).toEqual([end, sent]);
    },
  );

  test('that refuses the client is asked again slowly, and errors, health and log have its words', async () => {
    let answer: Exchange = mistake;
    const world = worldOf(async () => answer, habits);
    const keeper = await world.start();
    const refused = {
      message: expect.stringMatching(/status 401 \(invalid_client\)/),
      extensions: { code: 'UPSTREAM_UNAUTHORIZED' },
    };
    const importing = keeper.import(pairOf('1'));
    await expect(importing).rejects.toMatchObject(refused);
    await expect(importing).rejects.toThrow(/^The imported pair is stored/);
    await world.time.pass(HOUR);
    expect(world.sent.length).toBeGreaterThan(10);
    expect(world.sent.length).toBeLessThan(40);
    const again = keeper.afterRefusal(await keeper.token(), 'token_expired', 0);
    await expect(again).rejects.toMatchObject(refused);
    expect(keeper.health()).toMatchObject({ troubles: ['unauthorized'], mistake: mistake.why });
    const errors = world.logged.filter(({ level }) => Number(level) >= 50);
    expect(errors).toMatchObject([{ trouble: 'unauthorized', msg: refused.message }]);
    answer = granted('2');
    await world.time.pass(5 * MINUTE);
    expect(keeper.health().troubles).toEqual([]);
    expect(keeper.health()).not.toHaveProperty('mistake');
  });

  test('a first import that proves spent says so, and is replaced by the next one', async () => {
    const answers: Exchange[] = [{ kind: 'invalid-grant' }, granted('3')];
    const world = worldOf(async () => answers.shift()!, habits);
    const keeper = await world.start();
    await expect(keeper.import(pairOf('1'))).rejects.toMatchObject({
      message: expect.stringMatching(/refuses the imported refresh token.*Import a new pair/),
      extensions: { code: 'TOKENS_LOST' },
    });
    expect(await keeper.import(pairOf('2'))).toBe('imported');
    expect(await keeper.token()).toMatchObject({ value: 'access-3' });
  });

  test('an import that proves spent is withdrawn, and rejects with what is in use again', async () => {
    const world = worldOf(async () => ({ kind: 'invalid-grant' }), habits);
    await world.put(() => ({ next: exchanged(), result: undefined }));
    const keeper = await world.start();
    await expect(keeper.import(pairOf('new'), true)).rejects.toMatchObject({
      message: expect.stringMatching(/withdrawn.*in use again, as generation 4/),
      extensions: { code: 'TOKENS_LOST' },
    });
    expect(await keeper.token()).toEqual({ value: 'access-2', generation: 4 });
  });

  test('a process that died during its exchange is waited for, and the error says since when, until when, and what then', async () => {
    const world = worldOf(undefined, habits);
    await world.put(importOf('1'));
    const claim = { attempt: 'a', generation: 1, over: null, by: 'dead/1', isFinal: true };
    await world.put(takeClaim(claim));
    const keeper = await world.start();
    const refused = keeper
      .afterRefusal(await keeper.token(), 'token_expired', 0)
      .catch((error: unknown) => error);
    await world.time.pass(MINUTE + 1_000);
    expect(await refused).toMatchObject({
      message: expect.stringMatching(
        /dead\/1 began a refresh at 2026-01-01T12:00:00.*its claim ends at 2026-01-01T12:02:30.*count as lost.*`replace: true`/,
      ),
      extensions: { code: 'UPSTREAM_UNREACHABLE' },
    });
    expect(keeper.health().troubles).toEqual(['uncertain', 'late']);
    expect(await keeper.import(pairOf('2'))).toBe('in use');
    await world.time.pass(80_000);
    const last = codeAfter(keeper.afterRefusal(await keeper.token(), 'token_expired', 0));
    await world.time.pass(10_000);
    expect(await last.soFar()).toBe('TOKENS_LOST');
    expect(keeper.health().troubles).toEqual(['lost']);
    expect(await keeper.import(pairOf('2'))).toBe('imported');
    expect(world.sent).toEqual(['refresh-2']);
  });
});

test('a token that is refused as expired and was never accepted is renewed after 30 s, and the next one after a minute', async () => {
  const world = worldOf();
  await world.put(() => ({ next: exchanged(), result: undefined }));
  const keeper = await world.start();
  for (const patience of [30_000, 60_000]) {
    await world.time.pass(patience - 5_000);
    const refused = await keeper.token();
    expect(await keeper.afterRefusal(refused, 'token_expired', 0)).toBeUndefined();
    await world.time.pass(6_000);
    expect(await keeper.afterRefusal(refused, 'token_expired', 0)).toMatchObject({
      generation: refused.generation + 1,
    });
  }
  expect(world.sent).toHaveLength(2);
});

test.each<[which: string, isAccepted: boolean, first: number]>([
  ['the token was accepted before', true, 2],
  ['the token was never accepted', false, 2],
  ['the request was sent with an older token first', false, 1],
])(
  'a request is sent again three times, the last time after 1.5 to 3 s, while a new access token is refused: %s',
  async (_which, isAccepted, first) => {
    const world = worldOf();
    const second = exchanged();
    const newest = saveOf(second, '3')(second, NOON).result;
    await world.put(() => ({ next: first === 1 ? newest : second, result: undefined }));
    const keeper = await world.start();
    let token: AccessToken | undefined = { value: '', generation: first };
    if (isAccepted) keeper.accepted(token);
    const replays: number[] = [];
    const request = async () => {
      for (;;) {
        token = await keeper.afterRefusal(token!, 'token_expired', replays.length);
        if (!token) return;
        replays.push(world.time.now);
      }
    };
    const ended = request();
    await world.time.pass(MINUTE);
    await ended;
    expect(replays).toHaveLength(3);
    expect(replays.at(-1)).toBeGreaterThan(1_500);
    expect(replays.at(-1)).toBeLessThan(3_000);
    expect(world.sent).toEqual([]);
  },
);

describe('a token link', () => {
  test.each<[string, State]>([
    ['in use', exchanged()],
    ['that was moved away', { ...exchanged(), movedTo: 'elsewhere' }],
  ])('is not read for a set %s', async (_what, state) => {
    const world = worldOf();
    await world.put(() => ({ next: state, result: undefined }));
    const link = linkTo(async () => pairOf('new'));
    await world.start({ link });
    await world.time.pass(HOUR);
    expect(link.reads).toBe(0);
    expect(await world.state()).toMatchObject({ set: state.set, generation: 2 });
  });

  test.each<[string, State | null]>([
    ['an empty store', null],
    ['a lost set', { ...exchanged(), lost: true }],
  ])(
    'is imported and exchanged at once for %s, and no request is without a token',
    async (_what, state) => {
      const world = worldOf();
      if (state) await world.put(() => ({ next: state, result: undefined }));
      const link = linkTo(async () => pairOf('new'));
      const keeper = await world.start({ link });
      await world.time.pass(1_000);
      expect(await keeper.token()).toMatchObject({ value: 'access-after refresh-new' });
      expect({ reads: link.reads, sent: world.sent }).toEqual({ reads: 1, sent: ['refresh-new'] });
    },
  );

  test.each<[string, () => Promise<ReturnType<typeof pairOf>>]>([
    ['gives a refresh token that this store has seen', async () => pairOf('1')],
    [
      'is dead',
      async () => {
        throw new LinkError('The token link is dead.');
      },
    ],
  ])('that %s is read once, replaces nothing, and raises one alarm', async (_what, read) => {
    const world = worldOf();
    await world.put(() => ({ next: { ...exchanged(), lost: true }, result: undefined }));
    const link = linkTo(read);
    await world.start({ link });
    await world.time.pass(HOUR);
    expect({ reads: link.reads, sent: world.sent }).toEqual({ reads: 1, sent: [] });
    expect(await world.state()).toMatchObject({ generation: 2, lost: true });
    expect(world.logged.filter(({ level }) => level === 50)).toHaveLength(1);
  });

  test('that another process has imported and ended meanwhile raises no alarm', async () => {
    const world = worldOf();
    const link = linkTo(async () => {
      await world.put(importOf('1'));
      throw new LinkError('The token link is dead.');
    });
    const keeper = await world.start({ link });
    expect(await keeper.token()).toMatchObject({ value: 'access-1' });
    await world.time.pass(1_000);
    expect(world.logged.filter(({ level }) => level === 50)).toEqual([]);
  });

  test('that cannot be read now is read again with growing pauses, and imported once it can', async () => {
    const world = worldOf();
    let isUp = false;
    const link = linkTo(async () => {
      if (isUp) return pairOf('new');
      throw new LinkError('The service is down.', { isPassing: true });
    });
    const keeper = await world.start({ link });
    const early = codeAfter(Promise.resolve(keeper.token()));
    await world.time.pass(HOUR);
    expect(await early.soFar()).toBe('TOKENS_MISSING');
    expect(link.reads).toBeGreaterThan(10);
    expect(link.reads).toBeLessThan(30);
    isUp = true;
    await world.time.pass(6 * MINUTE);
    expect(await keeper.token()).toMatchObject({ generation: 2 });
  });
});

test('a store that is unavailable at the start is used as soon as it is back', async () => {
  const world = worldOf();
  await world.put(importOf('1'));
  let isDown = true;
  const keeper = await world.start({
    store: {
      ...world.store,
      read: async () => {
        if (isDown) throw new StoreUnavailable('nothing listens there');
        return world.store.read();
      },
    },
  });
  expect(keeper.present).toBe(false);
  expect(keeper.health()).toEqual({ troubles: ['late'] });
  const early = codeAfter(Promise.resolve(keeper.token()));
  await world.time.pass(1_000);
  expect(await early.soFar()).toBe('INTERNAL_SERVER_ERROR');
  isDown = false;
  expect(await keeper.token()).toMatchObject({ generation: 1 });
});

test('a store that is damaged under a running process is an error that names the store and the step', async () => {
  const world = worldOf();
  await world.put(() => ({ next: exchanged(), result: undefined }));
  let isDamaged = false;
  await world.start({
    store: {
      ...world.store,
      read: async () => {
        if (isDamaged) throw new Error('file is not a database');
        return world.store.read();
      },
    },
  });
  isDamaged = true;
  await world.time.pass(5 * MINUTE);
  const errors = world.logged.filter(({ level }) => level === 50);
  expect(errors).toHaveLength(1);
  expect(JSON.stringify(errors)).toMatch(/cannot be used.*Check that `store` names/);
});

const lostSet: State = { ...exchanged(), lost: true };
const refusedSet: State = { ...exchanged(), refusals: 1, refusedAt: NOON, expiresAt: NOON };

test.each<[Trouble, State | null, (keeper: TokenKeeper) => void]>([
  ['missing', null, () => {}],
  ['missing', { ...exchanged(), movedTo: 'elsewhere' }, () => {}],
  ['lost', lostSet, () => {}],
  ['uncertain', endedUnclear(), () => {}],
  ['late', refusedSet, () => {}],
  ['unauthorized', exchanged(), (keeper) => keeper.refused({ value: '', generation: 2 })],
])(
  'the log has the trouble %s once when it begins, and its end: %#',
  async (trouble, state, begin) => {
    const world = worldOf(async () => ({ kind: 'invalid-grant' }));
    if (state) await world.put(() => ({ next: state, result: undefined }));
    const keeper = await world.start();
    await world.time.pass(MINUTE);
    begin(keeper);
    expect(keeper.health().troubles).toEqual([trouble]);
    const lines = () => world.logged.filter((line) => line['trouble'] === trouble);
    expect(lines()).toMatchObject([{ msg: expect.stringMatching(/Callers .*\.$/) }]);
    await world.put(() => ({ next: { ...exchanged('3'), generation: 9 }, result: undefined }));
    await world.time.pass(MINUTE);
    expect(lines()).toMatchObject([{}, { level: 30, msg: `The trouble ${trouble} is over.` }]);
  },
);

test.each<[string, State | null]>([
  ['has no tokens', null],
  ['has a lost set', { ...exchanged(), lost: true }],
])('a process that %s goes on with a set that another one imports', async (_what, state) => {
  const world = worldOf();
  if (state) await world.put(() => ({ next: state, result: undefined }));
  const keeper = await world.start();
  await world.time.pass(MINUTE);
  await world.put(importOf('new'));
  await world.time.pass(MINUTE);
  expect(await keeper.token()).toMatchObject({ value: 'access-after refresh-new' });
  expect(keeper.health().troubles).toEqual([]);
});

describe('the clock of the store', () => {
  test.each([
    ['a day ahead', DAY],
    ['a day back', -DAY],
  ])('that jumps %s costs one exchange, and its correction at most one more', async (_what, ms) => {
    const world = worldOf();
    await world.put(() => ({ next: exchanged(), result: undefined }));
    const keeper = await world.start();
    await world.time.pass(10 * MINUTE);
    for (const [ahead, most] of [
      [ms, 1],
      [0, 2],
    ] as const) {
      world.away.ahead = ahead;
      await world.time.pass(10 * MINUTE);
      expect(world.sent.length).toBeLessThanOrEqual(most);
      expect(keeper.health().troubles).toEqual([]);
    }
  });

  test('that jumps beyond the end of the refresh token causes no request, and correcting it is enough', async () => {
    const world = worldOf();
    await world.put(() => ({ next: exchanged(), result: undefined }));
    const keeper = await world.start();
    world.away.ahead = 365 * DAY;
    await world.time.pass(10 * MINUTE);
    expect(keeper.health().troubles).toEqual(['lost']);
    const refused = codeAfter(keeper.afterRefusal(await keeper.token(), 'token_expired', 0));
    await world.time.pass(1_000);
    expect(await refused.soFar()).toBe('TOKENS_LOST');
    world.away.ahead = 0;
    await world.time.pass(MINUTE);
    expect(keeper.health().troubles).toEqual([]);
    expect(world.sent).toEqual([]);
  });

  test('that goes on for 30 hours while the machine sleeps costs one exchange', async () => {
    const world = worldOf();
    await world.put(() => ({ next: exchanged(), result: undefined }));
    const keeper = await world.start();
    world.away.asleep = 30 * HOUR;
    await world.time.pass(MINUTE);
    expect(world.sent).toHaveLength(1);
    expect(keeper.health().troubles).toEqual([]);
  });
});

test('the log warns once at 30, 14, 7, 3 and 1 days before the end of a refresh token, and nothing is sent after it', async () => {
  const world = worldOf(async () => ({ kind: 'unsent', why: 'ECONNREFUSED' }));
  await world.put(() => ({ next: exchanged(), result: undefined }));
  const keeper = await world.start();
  for (const left of [31, 30, 29, 15, 14, 13, 7, 6, 3, 2, 1, 0.5]) {
    world.away.ahead = (120 - left) * DAY;
    await world.time.pass(MINUTE);
  }
  const warnings = world.logged.filter(({ trouble }) => trouble === 'ending');
  expect(warnings.map(({ days }) => days)).toEqual([30, 14, 7, 3, 1]);
  world.away.ahead = 120 * DAY;
  await world.time.pass(2 * MINUTE);
  const { length } = world.sent;
  await world.time.pass(10 * MINUTE);
  expect(world.sent).toHaveLength(length);
  expect(keeper.health()).toMatchObject({ troubles: ['lost'], refreshSecondsLeft: 0 });
  expect(world.logged.filter(({ trouble }) => trouble === 'lost')).toHaveLength(1);
});

test('a backup whose refresh token is spent serves until the expiry, is lost after four refusals, and the log names the cause', async () => {
  const world = worldOf(async () => ({ kind: 'invalid-grant' }));
  await world.put(() => ({ next: exchanged(), result: undefined }));
  const keeper = await world.start();
  await world.time.pass(LIFE * 1000 - MINUTE);
  expect(keeper.health().troubles).toEqual([]);
  expect(world.sent).toHaveLength(1);
  await world.time.pass(HOUR);
  expect(keeper.health().troubles).toEqual(['lost']);
  expect(world.sent).toHaveLength(4);
  const [loss, ...more] = world.logged.filter(({ trouble }) => trouble === 'lost');
  expect(more).toEqual([]);
  expect(loss!['msg']).toContain('the store was replaced by an older copy of it');
});

test('a refused access token is the trouble unauthorized, until the service accepts it or there is another one', async () => {
  const world = worldOf();
  await world.put(() => ({ next: exchanged(), result: undefined }));
  const keeper = await world.start();
  const token = await keeper.token();
  keeper.refused({ ...token, generation: 1 });
  expect(keeper.health().troubles).toEqual([]);
  keeper.refused(token);
  expect(keeper.health().troubles).toEqual(['unauthorized']);
  keeper.accepted(token);
  expect(keeper.health().troubles).toEqual([]);
  keeper.refused(token);
  await world.put(importOf('new', true));
  await world.time.pass(MINUTE);
  expect(keeper.health().troubles).toEqual([]);
});

function endedUnclear(): State {
  const claimed = claimOf('a', 2)(exchanged(), NOON).next!;
  const unclear = { kind: 'unclear', why: 'cut', answer: null } as const;
  return endAttempt('a', unclear, 'host/1')(claimed, NOON).next!;
}

function granted(name: string): Exchange {
  return { kind: 'granted', pair: pairOf(name) };
}

/** A store, a service and a clock for keepers. The clock of the store is the virtual time since noon. */
function worldOf(
  answer: (refreshToken: string, time: VirtualTime) => Promise<Exchange> = async (
    refreshToken,
  ) => ({
    kind: 'granted',
    pair: pairOf(`after ${refreshToken}`),
  }),
  habits: Omit<TokenService, 'exchange'> = { check: async () => ({ kind: 'works' }) },
) {
  const time = new VirtualTime();
  const folder = quickFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { log, logged } = recordingLog();
  const sent: string[] = [];
  const away = {
    /** How far the clock of the store was set ahead, ms. */
    ahead: 0,
    /** How long the machine has slept, ms. */
    asleep: 0,
  };
  const store = memoryStore(() => NOON + time.now + away.asleep + away.ahead);
  return {
    time,
    logged,
    sent,
    away,
    store,
    put: (rule: Rule<unknown>) => store.update(rule),
    state: async () => (await store.read()).state,
    start: async (changes: Partial<KeeperParts> = {}) => {
      const keeper = await openTokenKeeper({
        store,
        service: {
          exchange: async ({ refreshToken }) => {
            sent.push(refreshToken);
            return answer(refreshToken, time);
          },
          ...habits,
        },
        emergency: emergencyIn(folder, createSealer([])),
        serviceUrl: SERVICE,
        by: 'test/1',
        wording: PLAIN_WORDING,
        meansExpired: (detail) => detail === 'token_expired',
        clock: clockOf(time, () => away.asleep),
        log,
        random: () => 0,
        ...changes,
      });
      onTestFinished(async () => {
        const closed = keeper.close();
        await time.pass(3 * MINUTE);
        await closed;
      });
      return keeper;
    },
  };
}

function clockOf(time: VirtualTime, asleep: () => number): Clock {
  return {
    now: () => NOON + time.now + asleep(),
    elapsed: () => time.now + asleep(),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const leave = () => reject(signal!.reason as Error);
        if (signal?.aborted) return leave();
        signal?.addEventListener('abort', leave);
        time.after(Math.max(1, ms), resolve);
      }),
  };
}

const answeredAfter =
  (ms: number) =>
  async (refreshToken: string, time: VirtualTime): Promise<Exchange> => {
    await time.sleep(ms);
    return { kind: 'granted', pair: pairOf(`after ${refreshToken}`) };
  };

function linkTo(read: () => Promise<ReturnType<typeof pairOf>>) {
  const link = {
    reads: 0,
    read: () => {
      link.reads += 1;
      return read();
    },
  };
  return link;
}

/** The code of the error that something ends with. */
function codeAfter(work: Promise<unknown>) {
  let outcome = 'waits';
  work.then(
    () => (outcome = 'works'),
    (error: unknown) => (outcome = String(codeOf(error))),
  );
  return { soFar: async () => outcome };
}
