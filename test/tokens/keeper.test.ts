/**
 * What a keeper sends, stores, reports and gives to callers when something goes wrong. Each row is one fault, in virtual
 * time. What several processes, kills and lost commits do to one another is the simulator's (simulate).
 */
import { rmSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import { emergencyIn, type Emergency } from '../../src/tokens/emergency.ts';
import { PLAIN_WORDING, type Trouble } from '../../src/tokens/health.ts';
import { openTokenKeeper, type AccessToken } from '../../src/tokens/keeper.ts';
import { LinkError } from '../../src/tokens/link.ts';
import type { Pair } from '../../src/tokens/pair.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import type { Exchange, TokenService } from '../../src/tokens/service.ts';
import { endAttempt, successor, takeClaim, type Rule, type State } from '../../src/tokens/state.ts';
import { StoreUnavailable, type TokenStore } from '../../src/tokens/store.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { memoryStore } from '../support/gateway/stores.ts';
import { quickFolder } from '../support/quick-folder.ts';
import { sleepIn, VirtualTime } from './simulate/virtual-time.ts';
import {
  claimOf,
  exchanged,
  imported,
  importOf,
  LIFE,
  NOON,
  pairOf,
  saveOf,
  SERVICE,
} from './values.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const UNCLEAR: Exchange = { kind: 'unclear', why: 'cut', answer: null };
const REFUSED: Exchange = { kind: 'invalid-grant' };
const MISTAKE: Exchange = { kind: 'unsent', why: 'status 401 (invalid_client)', isMistake: true };
const granted = (name: string): Exchange => ({ kind: 'granted', pair: pairOf(name) });
/** Everything that follows from a refresh token is revoked if it is sent twice, and no access token can be checked. */
const REVOKES = { revokesOnReuse: true };

interface Fault {
  readonly fault: string;
  /** What the store has. Default: a set that was exchanged at noon, which is now, for a day. */
  readonly set?: State | null;
  /** What the service answers, in this order. Default, and in the end: the next pair. */
  readonly answers?: readonly (Exchange | ((world: World) => Promise<Exchange>))[];
  readonly habits?: Omit<TokenService, 'exchange'>;
  readonly link?: () => Promise<Pair>;
  /** Whether the store is unavailable at the start. */
  readonly isDown?: boolean;
  /** Whether the service refuses every access token. Default: only the one that a caller comes with. */
  readonly refusesAll?: boolean;
  readonly happens: (world: World) => Promise<unknown>;
  /** What it saw on the way. */
  readonly seen?: readonly unknown[];
  /** The refresh tokens that were sent. Default: none */
  readonly sent?: readonly string[];
  /** What callers got, in their order: an access token, `refused`, or the code of an error. */
  readonly called?: readonly string[];
  readonly troubles?: readonly Trouble[];
  readonly stored?: object;
  /** Each is logged once, as an error or worse. */
  readonly alarms?: readonly RegExp[];
  /** The emergency files. */
  readonly files?: readonly object[];
}

const lostSet: State = { ...exchanged(), lost: true };
const refusedSet: State = { ...exchanged(), refusals: 1, refusedAt: NOON, expiresAt: NOON };

function uncertainSet(): State {
  const claimed = claimOf('a', 2)(exchanged(), NOON).next!;
  const ending = { kind: 'unclear', why: 'cut', answer: null } as const;
  return endAttempt('a', ending, 'host/1')(claimed, NOON).next!;
}

test.each<Fault>([
  {
    fault:
      'a slow exchange: the token before it is given at once, its caller waits for 30 s, and the pair is saved',
    set: imported(),
    answers: [slowly(100_000)],
    happens: async ({ saw, pass, ask, token, outcomes }) => {
      await pass(1_000);
      saw(await token());
      ask();
      await pass(29_000);
      saw([...outcomes]);
      await pass(2_000);
      saw([...outcomes]);
      await pass(100_000);
      saw(await token());
    },
    seen: ['access-1', [], ['UPSTREAM_UNREACHABLE'], 'access-next'],
    sent: ['refresh-1'],
    called: ['UPSTREAM_UNREACHABLE'],
    stored: { generation: 2, claim: null },
  },
  {
    fault: 'an exchange that ends the access token: its caller gets the new one',
    set: imported(),
    answers: [slowly(5_000)],
    happens: async ({ pass, ask }) => {
      await pass(1_000);
      ask('token_revoked');
      await pass(5_000);
    },
    sent: ['refresh-1'],
    called: ['access-next'],
  },
  // A token that is seconds old and was never accepted is not renewed by itself.
  ...(
    [
      [imported(), 'token_revoked'],
      [exchanged(), 'token_expired'],
    ] as const
  ).map(([set, detail]): Fault => ({
    fault: `an exchange of another process, and a caller whose refusal begins none (${detail}): it gets the new token`,
    set: claimOf('of another process', set.generation)(set, NOON).next!,
    happens: async ({ pass, ask, put }) => {
      await pass(10_000);
      ask(detail);
      await pass(3_000);
      await put((state, now) => saveOf(state!, 'won')(state, now));
      await pass(2_000);
    },
    called: ['access-won'],
  })),
  {
    fault: 'another process saves its pair while a caller reports the expiry: nothing is sent',
    set: claimOf('of another process', 1)(imported(), NOON).next!,
    happens: async ({ pass, ask, put, during }) => {
      await pass(1_000);
      during.update = () => put((state, now) => saveOf(state!, '2')(state, now));
      ask();
      await pass(1_000);
    },
    called: ['access-2'],
  },
  {
    fault:
      'an exchange without an answer: any refusal of the access token sends the refresh token once more',
    set: imported(),
    answers: [UNCLEAR],
    happens: async ({ saw, pass, ask, troubles }) => {
      await pass(HOUR);
      saw(troubles());
      ask('token_revoked');
      await pass(1_000);
    },
    seen: [['uncertain']],
    sent: ['refresh-1', 'refresh-1'],
    called: ['access-next'],
  },
  ...[UNCLEAR, REFUSED].map((ending): Fault => ({
    fault: `a service that revokes on reuse, and an exchange that is ${ending.kind}: a loss, until new tokens are imported`,
    set: imported(),
    answers: [ending],
    habits: REVOKES,
    happens: async ({ saw, pass, ask, troubles, keeper, token }) => {
      await pass(25 * HOUR);
      saw(troubles());
      ask();
      await pass(1_000);
      saw(await keeper.import(pairOf('2')));
      await pass(2_000);
      saw(await token());
    },
    seen: [['lost'], 'imported', 'access-next'],
    sent: ['refresh-1', 'refresh-2'],
    called: ['TOKENS_LOST'],
  })),
  {
    fault:
      'a process that died during the exchange of such a service: it is waited for, and then the tokens count as lost',
    set: takeClaim({ attempt: 'a', generation: 1, over: null, by: 'dead/1', isFinal: true })(
      imported(),
      NOON,
    ).next!,
    habits: REVOKES,
    happens: async ({ saw, pass, ask, troubles, keeper, errors }) => {
      ask();
      await pass(MINUTE + 1_000);
      saw(errors[0]);
      saw(troubles());
      saw(await keeper.import(pairOf('2')));
      await pass(80_000);
      ask();
      await pass(10_000);
    },
    seen: [
      expect.stringMatching(
        /dead\/1 began a refresh at 2026-01-01T12:00:00.*its claim ends at 2026-01-01T12:02:30.*count as lost.*`replace: true`/,
      ),
      ['uncertain', 'late'],
      'in use',
    ],
    called: ['UPSTREAM_UNREACHABLE', 'TOKENS_LOST'],
    troubles: ['lost'],
  },
  {
    fault:
      'a service that cannot be asked refuses its new token as well: one exchange, and a loss if that is refused',
    set: null,
    answers: [granted('2'), REFUSED],
    habits: REVOKES,
    refusesAll: true,
    happens: importsAndAsksTwice,
    sent: ['refresh-1', 'refresh-2'],
    called: ['TOKENS_LOST', 'TOKENS_LOST'],
    troubles: ['lost'],
  },
  {
    fault:
      'a service that cannot be asked refuses the token after that as well: callers are refused, and nothing more is sent',
    set: null,
    answers: [granted('2'), granted('3')],
    habits: REVOKES,
    refusesAll: true,
    happens: importsAndAsksTwice,
    sent: ['refresh-1', 'refresh-2'],
    called: ['refused', 'refused'],
  },
  {
    fault:
      'another process wins the exchange, and saves its pair after this one is refused: the pair of the winner is used',
    answers: [
      async ({ time, put }) => {
        time.after(1_500, () => void put((state, now) => saveOf(state!, 'won')(state, now)));
        return REFUSED;
      },
    ],
    happens: async ({ pass, ask }) => {
      await pass(HOUR);
      ask();
      await pass(5_000);
    },
    sent: ['refresh-2'],
    called: ['access-won'],
    stored: { pair: pairOf('won'), refusals: 0 },
  },
  {
    fault: 'an answer without a new refresh token: it is used, with an alarm',
    set: imported(),
    answers: [
      {
        kind: 'granted',
        pair: pairOf('next', { refreshToken: 'refresh-1' }),
        flaw: 'no new refresh token',
      },
    ],
    happens: ({ pass }) => pass(MINUTE),
    sent: ['refresh-1'],
    stored: { generation: 2, pair: { accessToken: 'access-next', refreshToken: 'refresh-1' } },
    alarms: [/no new refresh token/],
  },
  {
    fault:
      'a backup whose refresh token is spent: it serves until the expiry, four refusals are a loss, and the log names the cause',
    answers: [REFUSED, REFUSED, REFUSED, REFUSED],
    happens: async ({ saw, pass, sent }) => {
      await pass(LIFE * 1000 - MINUTE);
      saw(sent.length);
      await pass(HOUR);
    },
    seen: [1],
    sent: ['refresh-2', 'refresh-2', 'refresh-2', 'refresh-2'],
    troubles: ['lost'],
    alarms: [/the store was replaced by an older copy/],
  },
  // Stores and files
  {
    fault: 'a store that is unavailable at the start: it is used as soon as it is back',
    isDown: true,
    happens: async ({ saw, pass, ask, failing, troubles }) => {
      saw(troubles());
      ask();
      await pass(10_000);
      failing.read = undefined;
      await pass(MINUTE);
      ask();
      await pass(1_000);
    },
    seen: [['late']],
    sent: ['refresh-2'],
    called: ['INTERNAL_SERVER_ERROR', 'access-next'],
  },
  {
    fault:
      'a store that is damaged under a running process: one alarm names it, and the step that helps',
    happens: async ({ pass, failing }) => {
      failing.read = new Error('file is not a database');
      await pass(5 * MINUTE);
    },
    alarms: [/cannot be used.*Check that `store` names/],
  },
  {
    fault:
      'neither the store nor the folder can be written: the pair is used from memory, and written to whichever works first',
    set: imported(),
    answers: [
      async ({ failing }) => {
        failing.update = failing.folder = new StoreUnavailable('no space left');
        return granted('next');
      },
    ],
    happens: async ({ saw, pass, failing, token, troubles, emergency }) => {
      await pass(MINUTE);
      saw([await token(), troubles()]);
      failing.folder = undefined;
      await pass(MINUTE);
      saw(emergency.read().length);
      failing.update = undefined;
      await pass(MINUTE);
    },
    seen: [['access-next', ['unsaved']], 1],
    sent: ['refresh-1'],
    stored: { generation: 2, pair: pairOf('next') },
    files: [],
  },
  {
    fault:
      'the store cannot be written when the process is asked to end: that waits for seconds, and leaves the pair in its emergency file',
    set: imported(),
    answers: [
      async ({ failing }) => {
        failing.update = new StoreUnavailable('no space left');
        return granted('next');
      },
    ],
    happens: async ({ saw, pass, keeper }) => {
      await pass(MINUTE);
      let isClosed = false;
      void keeper.close().then(() => (isClosed = true));
      for (const ms of [4_000, 4_000]) {
        await pass(ms);
        saw(isClosed);
      }
    },
    seen: [false, true],
    sent: ['refresh-1'],
    troubles: ['unsaved'],
    files: [{ received: { pair: pairOf('next'), generation: 2 } }],
  },
  {
    fault:
      'another store takes the place of its own during an exchange: the pair stays in its emergency file, with an alarm',
    set: imported(),
    answers: [
      async ({ put }) => {
        await put(() => ({ next: imported('other'), result: undefined }));
        return granted('next');
      },
    ],
    happens: ({ pass }) => pass(1_000),
    sent: ['refresh-1', 'refresh-other'],
    files: [{ received: { pair: pairOf('next'), generation: 2 } }],
    alarms: [/stays in its emergency file/],
  },
  {
    fault:
      'emergency files of other stores: they stay, and the own one is removed once its pair is saved',
    happens: async ({ pass, emergency, store }) => {
      const own = (await store.read()).state!;
      const foreign = { ...exchanged(), service: 'https://other.example' };
      for (const state of [own, exchanged(), foreign]) {
        emergency.put(successor(state, pairOf('next')), NOON);
      }
      await pass(MINUTE);
    },
    stored: { generation: 3, pair: pairOf('next') },
    files: [{}, {}],
  },
  {
    fault:
      'an emergency file of another service, and an empty store: the file stays, and is not used',
    set: null,
    happens: async ({ pass, emergency }) => {
      const foreign = { ...exchanged(), service: 'https://other.example' };
      emergency.put(successor(foreign, pairOf('next')), NOON);
      await pass(MINUTE);
    },
    troubles: ['missing'],
    files: [{}],
  },
  {
    fault: 'the store becomes the store of another service: nothing is sent, and it is not changed',
    happens: async ({ pass, put, ask }) => {
      await put(() => ({ next: { ...exchanged(), service: 'https://other' }, result: undefined }));
      await pass(MINUTE);
      ask();
      await pass(1_000);
    },
    called: ['INTERNAL_SERVER_ERROR'],
    stored: { service: 'https://other', generation: 2, claim: null },
    alarms: [/belongs to https:\/\/other.*Correct `endpoint`/],
  },
  ...[null, lostSet].map((set): Fault => ({
    fault: `another process imports a set into a store that ${set ? 'has a lost set' : 'is empty'}: it is used, and the log says so`,
    set,
    happens: async ({ saw, pass, put, token, logged }) => {
      await pass(MINUTE);
      await put(importOf('new'));
      await pass(MINUTE);
      saw(await token());
      saw(logged.filter(({ msg }) => /another process has saved are in use/.test(String(msg))));
    },
    seen: ['access-next', [expect.objectContaining({ level: 30 })]],
    sent: ['refresh-new'],
  })),
  // Links
  ...[exchanged(), { ...exchanged(), movedTo: 'elsewhere' }].map((set): Fault => ({
    fault: `a token link, and a set that ${set.movedTo === null ? 'is in use' : 'was moved'}: it is not read`,
    set,
    link: async () => pairOf('new'),
    happens: async ({ saw, pass, linkReads }) => {
      await pass(HOUR);
      saw(linkReads());
    },
    seen: [0],
    troubles: set.movedTo === null ? [] : ['missing'],
    stored: { set: set.set, generation: 2 },
  })),
  ...[null, lostSet].map((set): Fault => ({
    fault: `a token link, and a store that ${set ? 'has a lost set' : 'is empty'}: it is imported and exchanged at once`,
    set,
    link: async () => pairOf('new'),
    happens: async ({ saw, pass, token }) => {
      await pass(1_000);
      saw(await token());
    },
    seen: ['access-next'],
    sent: ['refresh-new'],
  })),
  {
    fault:
      'a token link with a token that this store has seen: it replaces nothing, with one alarm',
    set: lostSet,
    link: async () => pairOf('1'),
    happens: ({ pass }) => pass(HOUR),
    troubles: ['lost'],
    alarms: [/tokens that this store has already seen/],
  },
  {
    fault: 'a token link that is dead: one alarm',
    set: lostSet,
    link: () => Promise.reject(new LinkError('The token link is dead.')),
    happens: ({ pass }) => pass(HOUR),
    troubles: ['lost'],
    alarms: [/The token link is dead/],
  },
  // Clocks
  ...[DAY, -DAY].map((ms): Fault => ({
    fault: `the clock of the store jumps by ${ms / DAY} day: one exchange, and at most one more after its correction`,
    happens: async ({ saw, pass, away, sent, troubles }) => {
      for (const [ahead, most] of [
        [0, 0],
        [ms, 1],
        [0, 2],
      ] as const) {
        away.ahead = ahead;
        await pass(10 * MINUTE);
        saw([sent.length <= most, ...troubles()]);
      }
      sent.length = 0;
    },
    seen: [[true], [true], [true]],
  })),
  {
    fault:
      'the clock of the store jumps beyond the end of the refresh token: nothing is sent, and its correction is enough',
    happens: async ({ saw, pass, away, troubles, ask }) => {
      away.ahead = 365 * DAY;
      await pass(10 * MINUTE);
      saw(troubles());
      ask();
      await pass(1_000);
      away.ahead = 0;
      await pass(MINUTE);
    },
    seen: [['lost']],
    called: ['TOKENS_LOST'],
  },
  {
    fault: 'the machine sleeps for 30 hours: one exchange',
    happens: async ({ pass, away }) => {
      away.asleep = 30 * HOUR;
      await pass(MINUTE);
    },
    sent: ['refresh-2'],
  },
])('$fault', async (row) => {
  const world = await worldOf(row);
  await row.happens(world);
  const { seen, sent, outcomes, logged, emergency, store, troubles, pass } = world;
  await pass(0);
  expect({ seen, sent, called: outcomes, troubles: troubles() }).toEqual({
    seen: row.seen ?? [],
    sent: row.sent ?? [],
    called: row.called ?? [],
    troubles: row.troubles ?? [],
  });
  expect((await store.read()).state ?? {}).toMatchObject(row.stored ?? {});
  for (const alarm of row.alarms ?? []) {
    const alarms = logged.filter((line) => Number(line['level']) >= 50);
    expect(alarms.filter((line) => alarm.test(JSON.stringify(line)))).toHaveLength(1);
  }
  if (row.files) expect(emergency.read()).toMatchObject(row.files);
});

test('a link that cannot be read now is read again with growing pauses, and imported once it can', async () => {
  let isUp = false;
  const { pass, ask, outcomes, token, linkReads } = await worldOf({
    set: null,
    link: async () => {
      if (isUp) return pairOf('new');
      throw new LinkError('The service is down.', { isPassing: true });
    },
  });
  ask();
  await pass(HOUR);
  expect(outcomes).toEqual(['TOKENS_MISSING']);
  expect(linkReads()).toBeGreaterThan(10);
  expect(linkReads()).toBeLessThan(30);
  isUp = true;
  await pass(6 * MINUTE);
  expect(await token()).toBe('access-next');
});

test('a service that refuses the client is asked again slowly, and errors, health and log have its words', async () => {
  const answers = Array.from({ length: 60 }, () => MISTAKE);
  const { keeper, pass, ask, errors, sent, logged } = await worldOf({
    set: null,
    answers,
    habits: REVOKES,
  });
  const refusal = {
    message: expect.stringMatching(/^The imported pair is stored.*status 401 \(invalid_client\)/),
    extensions: { code: 'UPSTREAM_UNAUTHORIZED' },
  };
  await expect(keeper.import(pairOf('1'))).rejects.toMatchObject(refusal);
  await pass(HOUR);
  expect(sent.length).toBeGreaterThan(10);
  expect(sent.length).toBeLessThan(40);
  ask();
  await pass(1_000);
  expect(errors).toEqual([expect.stringMatching(/status 401 \(invalid_client\)/)]);
  expect(keeper.health()).toMatchObject({ troubles: ['unauthorized'], mistake: MISTAKE.why });
  const alarms = logged.filter(({ level }) => Number(level) >= 50);
  expect(alarms).toMatchObject([
    { trouble: 'unauthorized', msg: expect.stringMatching(/status 401 \(invalid_client\)/) },
  ]);
  answers.length = 0;
  await pass(5 * MINUTE);
  expect(keeper.health().troubles).toEqual([]);
  expect(keeper.health()).not.toHaveProperty('mistake');
});

test('an import is exchanged at once, although the exchange before it has just failed', async () => {
  const { keeper, sent } = await worldOf({ set: null, answers: [MISTAKE], habits: REVOKES });
  await expect(keeper.import(pairOf('1'))).rejects.toThrow('invalid_client');
  expect(await keeper.import(pairOf('2'), true)).toBe('imported');
  expect(sent).toEqual(['refresh-1', 'refresh-2']);
  expect(await keeper.token()).toMatchObject({ value: 'access-next' });
});

test.each<[what: string, set: State | null, message: RegExp, next: object]>([
  ['the first one', null, /refuses the imported refresh token.*Import a new pair/, {}],
  [
    'one over a set in use, which is withdrawn',
    exchanged(),
    /withdrawn.*in use again, as generation 4/,
    { value: 'access-2', generation: 4 },
  ],
])('an import that proves spent rejects with what is in use: %s', async (...row) => {
  const [, set, message, next] = row;
  const { keeper } = await worldOf({ set, answers: [REFUSED], habits: REVOKES });
  await expect(keeper.import(pairOf('new'), true)).rejects.toMatchObject({
    message: expect.stringMatching(message),
    extensions: { code: 'TOKENS_LOST' },
  });
  expect(await keeper.token()).toMatchObject(next);
});

test('a token that is refused as expired and was never accepted is renewed after 30 s, and the next one after a minute', async () => {
  const { pass, ask, sent, outcomes } = await worldOf({});
  for (const patience of [30_000, 60_000]) {
    await pass(patience - 5_000);
    ask();
    await pass(6_000);
    ask();
    await pass(0);
  }
  expect(outcomes).toEqual(['refused', 'access-next', 'refused', 'access-next']);
  expect(sent).toHaveLength(2);
});

test.each<[which: string, isAccepted: boolean, first: number, replayed: number[]]>([
  ['with the token before it, if the new one was accepted before', true, 2, [1, 2, 2]],
  ['with the token before it, if the new one was never accepted', false, 2, [1, 2, 2]],
  ['with the new one, if the token before it was refused already', false, 1, [2, 2, 2]],
])(
  'a request is sent again three times, the last time after 1.5 to 3 s, while a new access token is refused: %s',
  async (_which, isAccepted, first, replayed) => {
    const { keeper, time, pass, sent } = await worldOf({});
    let token: AccessToken | undefined = { value: '', generation: first };
    if (isAccepted) keeper.accepted(token);
    const replays: { generation: number; at: number }[] = [];
    const request = async () => {
      while ((token = await keeper.afterRefusal(token!, 'token_expired', replays.length))) {
        replays.push({ generation: token.generation, at: time.now });
      }
    };
    const ended = request();
    await pass(MINUTE);
    await ended;
    expect(replays.map(({ generation }) => generation)).toEqual(replayed);
    expect(replays.at(-1)!.at).toBeGreaterThan(1_500);
    expect(replays.at(-1)!.at).toBeLessThan(3_000);
    expect(sent).toEqual([]);
  },
);

test.each<[Trouble, State | null, (world: World) => void]>([
  ['missing', null, () => {}],
  ['missing', { ...exchanged(), movedTo: 'elsewhere' }, () => {}],
  ['lost', lostSet, () => {}],
  ['uncertain', uncertainSet(), () => {}],
  ['late', refusedSet, () => {}],
  ['unauthorized', exchanged(), ({ keeper }) => keeper.refused({ value: '', generation: 2 })],
])(
  'the log has the trouble %s once when it begins, and its end: %#',
  async (trouble, set, begin) => {
    const world = await worldOf({ set, answers: [REFUSED, REFUSED, REFUSED] });
    const { pass, put, troubles, logged } = world;
    await pass(MINUTE);
    begin(world);
    expect(troubles()).toEqual([trouble]);
    const lines = () => logged.filter((line) => line['trouble'] === trouble);
    expect(lines()).toMatchObject([{ msg: expect.stringMatching(/Callers .*\.$/) }]);
    await put(() => ({ next: { ...exchanged('3'), generation: 9 }, result: undefined }));
    await pass(MINUTE);
    expect(lines()).toMatchObject([{}, { level: 30, msg: `The trouble ${trouble} is over.` }]);
  },
);

test('the trouble unauthorized is of the newest token alone, and ends once the service accepts it', async () => {
  const { keeper, troubles } = await worldOf({});
  const token = await keeper.token();
  keeper.refused({ ...token, generation: 1 });
  expect(troubles()).toEqual([]);
  keeper.refused(token);
  expect(troubles()).toEqual(['unauthorized']);
  keeper.accepted(token);
  expect(troubles()).toEqual([]);
});

test('the log warns once at 30, 14, 7, 3 and 1 days before the end of a refresh token, and nothing is sent after it', async () => {
  const unsent: Exchange = { kind: 'unsent', why: 'ECONNREFUSED' };
  const answers = Array.from({ length: 9_999 }, () => unsent);
  const { keeper, pass, away, sent, logged } = await worldOf({ answers });
  for (const left of [31, 30, 29, 15, 14, 13, 7, 6, 3, 2, 1, 0.5]) {
    away.ahead = (120 - left) * DAY;
    await pass(MINUTE);
  }
  const warnings = logged.filter(({ trouble }) => trouble === 'ending');
  expect(warnings.map(({ days }) => days)).toEqual([30, 14, 7, 3, 1]);
  away.ahead = 120 * DAY;
  await pass(2 * MINUTE);
  const { length } = sent;
  await pass(10 * MINUTE);
  expect(sent).toHaveLength(length);
  expect(keeper.health()).toMatchObject({ troubles: ['lost'], refreshSecondsLeft: 0 });
  expect(logged.filter(({ trouble }) => trouble === 'lost')).toHaveLength(1);
});

function slowly(ms: number) {
  return async ({ time }: World): Promise<Exchange> => {
    await time.sleep(ms);
    return granted('next');
  };
}

async function importsAndAsksTwice({ keeper, pass, ask }: World): Promise<void> {
  expect(await keeper.import(pairOf('1'))).toBe('imported');
  for (const _request of [1, 2]) {
    ask();
    await pass(4_000);
  }
}

type World = Awaited<ReturnType<typeof worldOf>>;

/** A store, a service, a folder and a clock for a keeper, which is started. */
async function worldOf({
  set = exchanged(),
  answers = [],
  habits = { check: async () => ({ kind: 'works' }) },
  link,
  isDown = false,
  refusesAll = false,
}: Omit<Fault, 'fault' | 'happens'>) {
  const time = new VirtualTime();
  const folder = quickFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { log, logged } = recordingLog();
  const away = {
    /** How far the clock of the store was set ahead, ms. */
    ahead: 0,
    /** How long the machine has slept, ms. */
    asleep: 0,
  };
  const failing: Partial<Record<'read' | 'update' | 'folder', Error | undefined>> = {};
  /** Happens once, before the next change of the store by the keeper. */
  const during: { update: (() => Promise<unknown>) | undefined } = { update: undefined };
  const sent: string[] = [];
  let reads = 0;
  const outcomes: string[] = [];
  const seen: unknown[] = [];
  const errors: string[] = [];
  const store = memoryStore(() => NOON + time.now + away.asleep + away.ahead);
  const put = (rule: Rule<unknown>) => store.update(rule);
  if (set) await put(() => ({ next: set, result: undefined }));
  if (isDown) failing.read = new StoreUnavailable('nothing listens there');
  const spoilt: TokenStore = {
    ...store,
    read: async () => {
      if (failing.read) throw failing.read;
      return store.read();
    },
    update: async (rule) => {
      const { update } = during;
      during.update = undefined;
      await update?.();
      if (failing.update) throw failing.update;
      return store.update(rule);
    },
  };
  const files = emergencyIn(folder, createSealer([]));
  const emergency: Emergency = {
    ...files,
    put: (received, at) => !failing.folder && files.put(received, at),
  };
  const keeper = await openTokenKeeper({
    store: spoilt,
    service: {
      exchange: async ({ refreshToken }) => {
        const answer = answers[sent.length] ?? granted('next');
        sent.push(refreshToken);
        return typeof answer === 'function' ? answer(world) : answer;
      },
      ...habits,
    },
    emergency,
    serviceUrl: SERVICE,
    by: 'test/1',
    wording: PLAIN_WORDING,
    meansExpired: (detail) => detail === 'token_expired',
    clock: {
      now: () => NOON + time.now + away.asleep,
      elapsed: () => time.now + away.asleep,
      sleep: sleepIn(time),
    },
    log,
    random: () => 0,
    link: link && {
      read: () => {
        reads += 1;
        return link();
      },
    },
  });
  onTestFinished(async () => {
    const closed = keeper.close();
    await time.pass(3 * MINUTE);
    await closed;
  });
  const request = async (detail: string) => {
    let token: AccessToken | undefined = await keeper.token();
    for (let replays = 0; token; replays += 1) {
      token = await keeper.afterRefusal(token, detail, replays);
      if (token && !refusesAll) return token.value;
    }
    return 'refused';
  };
  const world = {
    time,
    pass: (ms: number) => time.pass(ms),
    away,
    failing,
    during,
    store,
    put,
    emergency,
    keeper,
    logged,
    /** The refresh tokens that the service got. */
    sent,
    linkReads: () => reads,
    token: async () => (await keeper.token()).value,
    troubles: () => keeper.health().troubles,
    /** Sends a request, which the service refuses. */
    ask: (detail = 'token_expired') =>
      void request(detail).then(
        (outcome) => outcomes.push(outcome),
        (error: unknown) => {
          outcomes.push(String(codeOf(error)));
          errors.push((error as Error).message);
        },
      ),
    /** What became of the requests, in the order in which they ended; the messages of those that failed. */
    outcomes,
    errors,
    seen,
    saw: (what: unknown) => void seen.push(what),
  };
  return world;
}
