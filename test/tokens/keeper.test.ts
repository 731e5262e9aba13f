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
import { createSealer } from '../../src/tokens/seal.ts';
import type { Exchange } from '../../src/tokens/service.ts';
import { endAttempt, successor, type Rule, type State } from '../../src/tokens/state.ts';
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

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const UNCLEAR = { kind: 'unclear', why: 'cut', answer: null } as const;
const REFUSED: Exchange = { kind: 'invalid-grant' };
const MISTAKE: Exchange = { kind: 'unsent', why: 'status 401 (invalid_client)', isMistake: true };
const UNSENT: Exchange = { kind: 'unsent', why: 'ECONNREFUSED' };
const granted = (name: string): Exchange => ({ kind: 'granted', pair: pairOf(name) });
const FULL = new StoreUnavailable('no space left');

interface Row {
  readonly fault: string;
  /** What the store has. Default: a set that was exchanged at noon, which is now, for a day. */
  readonly set?: State | null;
  /** What the service answers, in this order. Default, and in the end: the next pair. */
  readonly answers?: readonly (Exchange | ((world: World) => Promise<Exchange>))[];
  /** Whether the service cannot be asked about an access token: then one `invalid_grant` is a loss. */
  readonly isMute?: boolean;
  /** The name of the pair that the token link gives. */
  readonly link?: string;
  /** What fails from the start on. */
  readonly faults?: Partial<Faults>;
  readonly happens: readonly Step[];
  /** What the steps saw. */
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

/** Something that happens; a number: so many ms pass. */
type Step = number | ((world: World) => unknown);

interface Faults {
  /** How far the clock of the store was set ahead, ms. */
  ahead: number;
  /** How long the machine has slept, ms. */
  asleep: number;
  /** Calls of the store fail so. */
  read?: Error | undefined;
  update?: Error | undefined;
  /** Whether nothing can be written into the folder of emergency files. */
  folder?: boolean;
  /** Why the link cannot be read. */
  link?: LinkError | undefined;
  /** How every exchange ends. */
  exchange?: Exchange | undefined;
  /** Happens once, before the next change of the store by the keeper. */
  meanwhile?: Step | undefined;
}

/** A request, which the service refuses with this detail. */
const asks =
  (detail: string): Step =>
  (world) =>
    void world.ask(detail);
const ask = asks('token_expired');
/** From now on. */
const fails =
  (changes: Partial<Faults>): Step =>
  ({ faults }) =>
    Object.assign(faults, changes);
/** Another process changes the store. */
const puts =
  (rule: Rule<unknown>): Step =>
  ({ put }) =>
    put(rule);
const becomes = (next: State) => puts(() => ({ next, result: undefined }));
const wins = puts((state, now) => saveOf(state!, 'won')(state, now));
const imports =
  (name: string, replace = false): Step =>
  ({ keeper, seen }) =>
    void keeper
      .import(pairOf(name), replace)
      .catch((error: Error) => `${String(codeOf(error))}: ${error.message}`)
      .then((outcome) => seen.push(outcome));
const sees =
  (look: (world: World) => unknown): Step =>
  async (world) =>
    world.seen.push(await look(world));
const seesToken = sees(async ({ keeper }) => (await keeper.token()).value);
const seesTroubles = sees(({ keeper }) => keeper.health().troubles);
const seesCalls = sees(({ outcomes }) => [...outcomes]);
const seesError = sees(({ errors }) => errors.at(-1));
const seesSent = (least: number, most: number) =>
  sees(({ sent }) => sent.length >= least && sent.length <= most);
/** The generations that a request is sent again with, and whether the last one comes after 1.5 to 3 s. */
const replays = (from: number): Step => {
  const request = async ({ keeper, seen, time }: World) => {
    const begun = time.now;
    let token: AccessToken | undefined = { value: '', generation: from };
    for (let count = 0; ; count += 1) {
      token = await keeper.afterRefusal(token, 'token_expired', count);
      if (!token) break;
      seen.push(token.generation);
    }
    seen.push(time.now - begun > 1_500 && time.now - begun < 3_000);
  };
  return (world) => void request(world);
};
const accepts =
  (generation: number): Step =>
  ({ keeper }) =>
    keeper.accepted({ value: '', generation });
const refuses =
  (generation: number): Step =>
  ({ keeper }) =>
    keeper.refused({ value: '', generation });
const leaves =
  (state: State): Step =>
  ({ emergency }) =>
    emergency.put(successor(state, pairOf('next')), NOON);

const lostSet: State = { ...exchanged(), lost: true };
const movedSet: State = { ...exchanged(), movedTo: 'elsewhere' };
/** Its access token is the only one: the one before it has expired. */
const aloneSet: State = {
  ...exchanged(),
  previous: { accessToken: 'access-1', generation: 1, expiresAt: NOON },
};
const foreignSet: State = { ...exchanged(), service: 'https://other' };
const refusedSet: State = { ...exchanged(), refusals: 1, refusedAt: NOON, expiresAt: NOON };
const claimedSet = claimOf('a', 2)(exchanged(), NOON).next!;
const uncertainSet = endAttempt('a', UNCLEAR, 'host/1')(claimedSet, NOON).next!;

test.each<Row>([
  {
    fault:
      'a slow exchange: the old token serves, who needs the new one waits for 30 s, and it is saved',
    set: imported(),
    answers: [slowly(100_000, 'no new refresh token')],
    happens: [1_000, seesToken, ask, 29_000, seesCalls, 2_000, seesCalls, 100_000, seesToken],
    seen: ['access-1', [], ['UPSTREAM_UNREACHABLE'], 'access-next'],
    sent: ['refresh-1'],
    called: ['UPSTREAM_UNREACHABLE'],
    stored: { generation: 2, claim: null },
    alarms: [/no new refresh token/],
  },
  {
    fault: 'an exchange that ends the access token: its caller gets the new one',
    set: imported(),
    answers: [slowly(5_000)],
    happens: [1_000, asks('token_revoked'), 5_000],
    sent: ['refresh-1'],
    called: ['access-next'],
  },
  // A token that is seconds old and was never accepted is not renewed by itself.
  ...(
    [
      [imported(), 'token_revoked'],
      [exchanged(), 'token_expired'],
    ] as const
  ).map(([set, detail]): Row => ({
    fault: `an exchange of another process, and a caller whose refusal begins none (${detail}): it gets the new token`,
    set: claimOf('of another process', set.generation)(set, NOON).next!,
    happens: [10_000, asks(detail), 3_000, wins, 2_000],
    called: ['access-won'],
  })),
  {
    fault: 'another process saves its pair while a caller reports the expiry: nothing is sent',
    set: claimOf('of another process', 1)(imported(), NOON).next!,
    happens: [1_000, fails({ meanwhile: wins }), ask, 1_000],
    called: ['access-won'],
  },
  {
    fault: 'an exchange without an answer: any refusal of the access token sends once more',
    set: imported(),
    answers: [UNCLEAR],
    happens: [HOUR, seesTroubles, asks('token_revoked'), 1_000],
    seen: [['uncertain']],
    sent: ['refresh-1', 'refresh-1'],
    called: ['access-next'],
  },
  {
    fault: 'a process that died: it is waited for, and then the refresh token is sent once more',
    set: claimOf('of a dead process', 1)(imported(), NOON).next!,
    happens: [ask, 61_000, seesError, seesTroubles, 100_000, seesToken],
    seen: [
      expect.stringMatching(
        /host\/1 began a refresh at 2026-01-01T12:00:00.*its claim ends at 2026-01-01T12:02:30.*once more/,
      ),
      ['uncertain', 'late'],
      'access-next',
    ],
    sent: ['refresh-1'],
    called: ['UPSTREAM_UNREACHABLE'],
  },
  {
    fault: 'another process wins, and saves its pair after this one is refused: that pair is used',
    answers: [
      async (world) => {
        world.time.after(1_500, () => void take(wins, world));
        return REFUSED;
      },
    ],
    happens: [HOUR, ask, 5_000],
    sent: ['refresh-2'],
    called: ['access-won'],
    stored: { pair: pairOf('won'), refusals: 0 },
  },
  {
    fault:
      'a backup with a spent token: it serves, four refusals are a loss, and the log names the cause',
    answers: [REFUSED, REFUSED, REFUSED, REFUSED],
    happens: [LIFE * 1000 - MINUTE, seesSent(1, 1), HOUR],
    seen: [true],
    sent: ['refresh-2', 'refresh-2', 'refresh-2', 'refresh-2'],
    troubles: ['lost'],
    alarms: [/the store was replaced by an older copy/],
  },
  // New access tokens
  ...(
    [
      ['the token before it', exchanged(), [accepts(2), replays(2)], [1, 2, 2]],
      ['the token before it, 4 s after the exchange', exchanged(), [4_000, replays(2)], [1, 2, 2]],
      ['the new one, if the other was refused already', exchanged(), [replays(1)], [2, 2, 2]],
      ['the new one, if the other has expired', aloneSet, [replays(2)], [2, 2, 2]],
    ] as const
  ).map(([first, set, happens, generations]): Row => ({
    fault: `a new access token is refused: a request is sent again three times, first with ${first}`,
    set,
    happens: [...happens, MINUTE],
    seen: [...generations, true],
  })),
  {
    fault:
      'an access token that was accepted is refused as expired after 6 s: it is renewed at once',
    // A late answer about the token before it says nothing about this one.
    happens: [accepts(2), accepts(1), 6_000, ask, 1],
    sent: ['refresh-2'],
    called: ['access-next'],
  },
  {
    fault:
      'a token that never worked is refused as expired: renewed after 30 s, the next after a minute',
    happens: [25_000, ask, 6_000, ask, 55_000, ask, 6_000, ask],
    sent: ['refresh-2', 'refresh-next'],
    called: ['refused', 'access-next', 'refused', 'access-next'],
  },
  {
    fault: 'a token that is refused for good: a trouble of the newest alone, until it is accepted',
    happens: [refuses(1), seesTroubles, refuses(2), seesTroubles, accepts(2)],
    seen: [[], ['unauthorized']],
  },
  {
    fault: 'a refresh token that may be sent again in a few seconds: a caller waits for it',
    set: { ...refusedSet, savedAt: NOON - MINUTE },
    happens: [accepts(2), 1_000, ask, 5_000],
    sent: ['refresh-2'],
    called: ['access-next'],
  },
  {
    fault: 'a service that cannot be reached for an hour: it is asked within seconds of its return',
    set: imported(),
    faults: { exchange: UNSENT },
    happens: [
      HOUR,
      fails({ exchange: undefined }),
      11_000,
      seesToken,
      ({ sent }) => sent.splice(0),
    ],
    seen: ['access-next'],
  },
  // Stores and files
  {
    fault: 'a store that is unavailable at the start: it is used as soon as it is back',
    faults: { read: new StoreUnavailable('nothing listens there') },
    happens: [seesTroubles, ask, 10_000, fails({ read: undefined }), MINUTE, ask, 1_000],
    seen: [['late']],
    sent: ['refresh-2'],
    called: ['INTERNAL_SERVER_ERROR', 'access-next'],
  },
  {
    fault: 'a store that is damaged under a running process: one alarm says what helps',
    happens: [fails({ read: new Error('file is not a database') }), 5 * MINUTE],
    alarms: [/cannot be used.*Check that `store` names/],
  },
  {
    fault:
      'neither store nor folder can be written: the pair is used, and put where it first can be',
    set: imported(),
    answers: [failing({ update: FULL, folder: true })],
    happens: [
      MINUTE,
      seesToken,
      seesTroubles,
      fails({ folder: false }),
      MINUTE,
      sees(({ emergency }) => emergency.read().length),
      fails({ update: undefined }),
      MINUTE,
    ],
    seen: ['access-next', ['unsaved'], 1],
    sent: ['refresh-1'],
    stored: { generation: 2, pair: pairOf('next') },
    files: [],
  },
  {
    fault: 'a stop while the store cannot be written: it waits for seconds, and leaves a file',
    set: imported(),
    answers: [failing({ update: FULL })],
    happens: [
      MINUTE,
      ({ keeper, seen }) => void keeper.close().then(() => seen.push('closed')),
      4_000,
      seesTroubles,
      4_000,
    ],
    seen: [['unsaved'], 'closed'],
    sent: ['refresh-1'],
    troubles: ['unsaved'],
    files: [{ received: { pair: pairOf('next'), generation: 2 } }],
  },
  {
    fault: 'another store takes the place of its own: the pair stays in its file, with an alarm',
    set: imported(),
    answers: [
      async (world) => {
        await take(becomes(imported('other')), world);
        return granted('next');
      },
    ],
    happens: [1_000],
    sent: ['refresh-1', 'refresh-other'],
    files: [{ received: { pair: pairOf('next'), generation: 2 } }],
    alarms: [/stays in its emergency file/],
  },
  {
    fault: 'emergency files of other stores stay, and the own one goes once its pair is saved',
    happens: [
      async ({ store, emergency }) =>
        emergency.put(successor((await store.read()).state!, pairOf('next')), NOON),
      leaves(exchanged()),
      MINUTE,
    ],
    // Its life counts from the exchange.
    stored: { generation: 3, pair: pairOf('next'), savedAt: NOON },
    files: [{}],
  },
  {
    fault: 'an emergency file of another service, and an empty store: it stays, and is not used',
    set: null,
    happens: [leaves(foreignSet), MINUTE],
    troubles: ['missing'],
    files: [{}],
  },
  {
    fault: 'the store becomes that of another service: nothing is sent, and it is not changed',
    happens: [becomes(foreignSet), MINUTE, ask, 1_000],
    called: ['INTERNAL_SERVER_ERROR'],
    stored: { service: 'https://other', generation: 2, claim: null },
    alarms: [/belongs to https:\/\/other.*Correct `endpoint`/],
  },
  ...[null, lostSet].map((set): Row => ({
    fault: `another process imports a set into a store that ${set ? 'has a lost set' : 'is empty'}: it is used, and the log says so`,
    set,
    happens: [
      MINUTE,
      puts(importOf('new')),
      MINUTE,
      seesToken,
      sees(({ logged }) =>
        logged.filter(({ msg }) => /another process has saved/.test(String(msg))),
      ),
    ],
    seen: ['access-next', [expect.objectContaining({ level: 30 })]],
    sent: ['refresh-new'],
  })),
  // Imports and links
  {
    fault: 'an import after an exchange that has just failed: it is exchanged at once',
    set: null,
    answers: [MISTAKE],
    happens: [imports('1'), 1, imports('2', true), 1, seesToken],
    seen: [expect.stringMatching('invalid_client'), 'imported', 'access-next'],
    sent: ['refresh-1', 'refresh-2'],
  },
  ...(
    [
      [null, 1, /^TOKENS_LOST: .*the imported refresh token.*Import a new pair/],
      [exchanged(), 4, /^TOKENS_LOST: .*withdrawn.*in use again, as generation 4/],
    ] as const
  ).map(([set, generation, message]): Row => ({
    fault: `an import over ${set ? 'a set in use' : 'nothing'} that proves spent: its error says what is in use`,
    set,
    answers: [REFUSED],
    isMute: true,
    happens: [imports('new', true), 3_000],
    seen: [expect.stringMatching(message)],
    sent: ['refresh-new'],
    troubles: set ? [] : ['lost'],
    stored: { generation, pair: pairOf(set ? '2' : 'new') },
  })),
  ...[exchanged(), movedSet].map((set): Row => ({
    fault: `a token link, and a set that ${set.movedTo === null ? 'is in use' : 'was moved'}: it is not read`,
    set,
    link: 'new',
    happens: [HOUR, sees(({ reads }) => reads())],
    seen: [0],
    troubles: set.movedTo === null ? [] : ['missing'],
    stored: { set: set.set, generation: 2 },
  })),
  ...[null, lostSet].map((set): Row => ({
    fault: `a token link, and a store that ${set ? 'has a lost set' : 'is empty'}: it is imported and exchanged at once`,
    set,
    link: 'new',
    happens: [1_000, seesToken],
    seen: ['access-next'],
    sent: ['refresh-new'],
  })),
  ...[
    { link: '1', alarm: /tokens that this store has already seen/ },
    { faults: { link: new LinkError('It is dead.') }, link: '3', alarm: /It is dead/ },
  ].map(({ alarm, ...row }): Row => ({
    fault: `a token link that cannot replace a lost set: one alarm (${alarm.source})`,
    set: lostSet,
    ...row,
    happens: [HOUR],
    troubles: ['lost'],
    alarms: [alarm],
  })),
  {
    fault: 'a token link that cannot be read now is read again with growing pauses, and imported',
    set: null,
    link: 'new',
    faults: { link: new LinkError('The service is down.', { isPassing: true }) },
    happens: [
      ask,
      HOUR,
      seesCalls,
      sees(({ reads }) => reads() > 10 && reads() < 30),
      fails({ link: undefined }),
      6 * MINUTE,
      seesToken,
    ],
    seen: [['TOKENS_MISSING'], true, 'access-next'],
    sent: ['refresh-new'],
    called: ['TOKENS_MISSING'],
  },
  // The client
  {
    fault:
      'a service that refuses the client: asked again slowly, its words everywhere, until corrected',
    set: null,
    faults: { exchange: MISTAKE },
    happens: [
      imports('1'),
      HOUR,
      seesSent(10, 40),
      ask,
      1_000,
      seesError,
      sees(({ keeper }) => keeper.health()),
      fails({ exchange: undefined }),
      5 * MINUTE,
      ({ sent }) => sent.splice(0),
    ],
    seen: [
      expect.stringMatching(/^UPSTREAM_UNAUTHORIZED: The imported pair is stored.*invalid_client/),
      true,
      expect.stringContaining(MISTAKE.why),
      expect.objectContaining({ troubles: ['unauthorized'], mistake: MISTAKE.why }),
    ],
    called: ['UPSTREAM_UNAUTHORIZED'],
    alarms: [/status 401 \(invalid_client\)/],
  },
  // Clocks
  ...[DAY, -DAY].map((ms): Row => ({
    fault: `the clock of the store jumps by ${ms / DAY} day: one exchange, and at most one more after its correction`,
    happens: [
      ...[0, ms, 0].flatMap((ahead, most) => [
        fails({ ahead }),
        10 * MINUTE,
        seesSent(0, most),
        seesTroubles,
      ]),
      ({ sent }) => sent.splice(0),
    ],
    seen: [true, [], true, [], true, []],
  })),
  {
    fault: 'the clock of the store jumps beyond the end of the set: lost, until it is corrected',
    happens: [
      fails({ ahead: 365 * DAY }),
      10 * MINUTE,
      seesTroubles,
      ask,
      1_000,
      fails({ ahead: 0 }),
      MINUTE,
    ],
    seen: [['lost']],
    called: ['TOKENS_LOST'],
  },
  {
    fault: 'the machine sleeps for 30 hours: one exchange',
    happens: [fails({ asleep: 30 * HOUR }), MINUTE],
    sent: ['refresh-2'],
  },
  {
    fault:
      'a set that nears its end: warned of 30, 14, 7, 3 and 1 days before, and never sent after it',
    faults: { exchange: UNSENT },
    happens: [
      ...[31, 30, 29, 15, 14, 13, 7, 6, 3, 2, 1, 0.5].flatMap((left) => [
        fails({ ahead: (120 - left) * DAY }),
        MINUTE,
      ]),
      sees(({ logged }) =>
        logged.flatMap(({ trouble, days }) => (trouble === 'ending' ? days : [])),
      ),
      fails({ ahead: 120 * DAY }),
      2 * MINUTE,
      ({ sent }) => sent.splice(0),
      10 * MINUTE,
      sees(({ keeper }) => keeper.health().refreshSecondsLeft),
    ],
    seen: [[30, 14, 7, 3, 1], 0],
    troubles: ['lost'],
    alarms: [/reached its end/],
  },
])('$fault', async (row) => {
  const world = await worldOf(row);
  for (const step of row.happens) await take(step, world);
  await take(0, world);
  const { seen, sent, outcomes, emergency, store, keeper } = world;
  expect({ seen, sent, called: outcomes, troubles: keeper.health().troubles }).toEqual({
    seen: row.seen ?? [],
    sent: row.sent ?? [],
    called: row.called ?? [],
    troubles: row.troubles ?? [],
  });
  expect((await store.read()).state ?? {}).toMatchObject(row.stored ?? {});
  for (const alarm of row.alarms ?? []) {
    expect(world.alarms().filter((line) => alarm.test(line))).toHaveLength(1);
  }
  if (row.files) expect(emergency.read()).toMatchObject(row.files);
});

test.each<[Trouble, State | null, Step?]>([
  ['missing', null],
  ['missing', movedSet],
  ['lost', lostSet],
  ['uncertain', uncertainSet],
  ['late', refusedSet],
  ['unauthorized', exchanged(), refuses(2)],
])('the log has the trouble %s once when it begins, and its end: %#', async (...row) => {
  const [trouble, set, begin = 0] = row;
  const world = await worldOf({ set, answers: [REFUSED, REFUSED, REFUSED] });
  const lines = () => world.logged.filter((line) => line['trouble'] === trouble);
  for (const step of [MINUTE, begin, seesTroubles]) await take(step, world);
  expect(world.seen).toEqual([[trouble]]);
  expect(lines()).toMatchObject([{ msg: expect.stringMatching(/Callers .*\.$/) }]);
  for (const step of [becomes({ ...exchanged('3'), generation: 9 }), MINUTE])
    await take(step, world);
  expect(lines()).toMatchObject([{}, { level: 30, msg: `The trouble ${trouble} is over.` }]);
});

async function take(step: Step, world: World): Promise<void> {
  await (typeof step === 'number' ? world.time.pass(step) : step(world));
}

function slowly(ms: number, flaw?: string) {
  return async ({ time }: World): Promise<Exchange> => {
    await time.sleep(ms);
    return { ...granted('next'), ...(flaw !== undefined && { flaw }) };
  };
}

/** From the answer of the exchange on. */
function failing(changes: Partial<Faults>) {
  return async ({ faults }: World): Promise<Exchange> => {
    Object.assign(faults, changes);
    return granted('next');
  };
}

type World = Awaited<ReturnType<typeof worldOf>>;

/** A store, a service, a folder and a clock for a keeper, which is started. */
async function worldOf({
  set = exchanged(),
  answers = [],
  isMute = false,
  link,
  ...row
}: Omit<Row, 'fault' | 'happens'>) {
  const time = new VirtualTime();
  const folder = quickFolder();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { log, logged } = recordingLog();
  const faults: Faults = { ahead: 0, asleep: 0, ...row.faults };
  const sent: string[] = [];
  let reads = 0;
  const linked = (name: string) => {
    reads += 1;
    if (faults.link) throw faults.link;
    return pairOf(name);
  };
  const store = memoryStore(() => NOON + time.now + faults.asleep + faults.ahead);
  const put = (rule: Rule<unknown>) => store.update(rule);
  if (set) await put(() => ({ next: set, result: undefined }));
  const spoilt: TokenStore = {
    ...store,
    read: async () => {
      if (faults.read) throw faults.read;
      return store.read();
    },
    update: async (rule) => {
      const { meanwhile } = faults;
      faults.meanwhile = undefined;
      if (meanwhile) await take(meanwhile, world);
      if (faults.update) throw faults.update;
      return store.update(rule);
    },
  };
  const files = emergencyIn(folder, createSealer([]));
  const emergency: Emergency = {
    ...files,
    put: (received, at) => !faults.folder && files.put(received, at),
  };
  const keeper = await openTokenKeeper({
    store: spoilt,
    service: {
      exchange: async ({ refreshToken }) => {
        const answer = faults.exchange ?? answers[sent.length] ?? granted('next');
        sent.push(refreshToken);
        return typeof answer === 'function' ? answer(world) : answer;
      },
      ...(!isMute && { check: async () => ({ kind: 'works' }) }),
    },
    emergency,
    serviceUrl: SERVICE,
    by: 'test/1',
    wording: PLAIN_WORDING,
    meansExpired: (detail) => detail === 'token_expired',
    clock: {
      now: () => NOON + time.now + faults.asleep,
      elapsed: () => time.now + faults.asleep,
      sleep: sleepIn(time),
      timer: () => () => {},
    },
    log,
    random: () => 0,
    link: link === undefined ? undefined : { read: async () => linked(link) },
  });
  onTestFinished(async () => {
    const closed = keeper.close();
    await time.pass(3 * MINUTE);
    await closed;
  });
  const request = async (detail: string) => {
    const token = await keeper.afterRefusal(await keeper.token(), detail, 0);
    return token?.value ?? 'refused';
  };
  const outcomes: string[] = [];
  const errors: string[] = [];
  const world = {
    time,
    faults,
    store,
    put,
    emergency,
    keeper,
    logged,
    /** What is logged as an error or worse. */
    alarms: () =>
      logged.filter(({ level }) => Number(level) >= 50).map((line) => JSON.stringify(line)),
    /** The refresh tokens that the service got. */
    sent,
    /** How often the link was read. */
    reads: () => reads,
    ask: (detail: string) =>
      request(detail).then(
        (outcome) => outcomes.push(outcome),
        (error: unknown) => {
          outcomes.push(String(codeOf(error)));
          errors.push((error as Error).message);
        },
      ),
    /** What became of the requests, in the order in which they ended; the messages of those that failed. */
    outcomes,
    errors,
    seen: [] as unknown[],
  };
  return world;
}
