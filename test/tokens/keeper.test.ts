/**
 * What a keeper sends, stores, reports and gives to callers when something goes wrong. Each row is one fault, in virtual
 * time. What several processes, kills and lost commits do to one another is the simulator's (simulate).
 */
import { rmSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import { emergencyIn } from '../../src/tokens/emergency.ts';
import type { Trouble } from '../../src/tokens/health.ts';
import { TokenKeeper, type AccessToken } from '../../src/tokens/keeper.ts';
import { createSealer } from '../../src/tokens/seal.ts';
import type { Exchange, Verdict } from '../../src/tokens/service.ts';
import { endAttempt, successor, type Rule, type State } from '../../src/tokens/state.ts';
import { StoreUnavailable } from '../../src/tokens/store.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { memoryStore } from '../support/gateway/stores.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { DAY, HOUR, MINUTE } from '../support/random/manual-clock.ts';
import { sleepIn, VirtualTime } from './simulate/virtual-time.ts';
import * as values from './values.ts';

const { claimOf, exchanged, imported, importOf, LIFE, NOON, pairOf, saveOf } = values;

const UNCLEAR = { kind: 'unclear', why: 'cut', answer: null } as const;
const REFUSED: Exchange = { kind: 'invalid-grant' };
const MISTAKE: Exchange = { kind: 'unsent', why: 'status 401 (invalid_client)', isMistake: true };
const UNSENT: Exchange = { kind: 'unsent', why: 'ECONNREFUSED' };
const NOT_SENT = { kind: 'not exchanged' } as const;
const FULL = new StoreUnavailable('no space left');

interface Row {
  readonly fault: string;
  /** What the store has. Default: a set that was exchanged at noon, which is now, for a day. */
  readonly set?: State | null;
  /** What the service answers, in this order. Default, and in the end: the next pair. */
  readonly answers?: readonly (Exchange | ((world: World) => unknown))[];
  /** What the service says about every access token; null: it cannot be asked, and one `invalid_grant` is a loss. */
  readonly check?: Verdict | null;
  /** The name of the pair that the token link gives. */
  readonly link?: string;
  /** Whose successor lies in an emergency file at the start. */
  readonly left?: State;
  /** What fails from the start on. */
  readonly faults?: Faults;
  readonly happens: Step;
  /** The refresh tokens that were sent, what callers got, and what the steps looked at, in this order. */
  readonly seen?: readonly unknown[];
  readonly troubles?: readonly Trouble[];
  readonly stored?: object;
  /** Each is logged once, as an error or worse. */
  readonly alarms?: readonly RegExp[];
  /** The emergency files. */
  readonly files?: readonly object[];
}

/** Something that happens. A number: so many ms pass. Faults: from now on. A list: one after the other. */
type Step = number | Faults | ((world: World) => unknown) | readonly Step[];

interface Faults {
  /** How far the clock of the store was set ahead, ms. */
  ahead?: number;
  /** How long the machine was suspended, ms: its wall clock went on. */
  suspended?: number;
  /** Calls of the store fail so. */
  read?: Error | undefined;
  update?: Error | undefined;
  /** How long what was read takes to arrive, ms. */
  slow?: number;
  /** Whether nothing can be written into the folder of emergency files. */
  folder?: boolean;
  /** Why the link cannot be read. */
  link?: Error | undefined;
  /** How every exchange ends. */
  exchange?: Exchange | undefined;
  /** Happens once, before the next change of the store by the keeper. */
  meanwhile?: Step | undefined;
}

const gets = (outcome: string) => `a caller gets ${outcome}`;
const sends = (name: string | number) => `refresh-${name} is sent`;

/** A request, which the service refuses with this detail. */
const asks = (detail: string) => (world: World) => void world.ask(detail);
const ask = asks('token_expired');
/** Another process changes the store. */
const puts = (rule: Rule<unknown>) => (world: World) => world.store.update(rule);
const becomes = (next: State) => puts(() => ({ next, result: undefined }));
const wins = puts((state, now) => saveOf(state!, 'won')(state, now));
const imports =
  (name: string, replace = false) =>
  (world: World) =>
    void world.keeper
      .import(pairOf(name), replace)
      .catch((error: Error) => `${String(codeOf(error))}: ${error.message}`)
      .then((outcome) => world.seen.push(outcome));
const sees = (look: (world: World) => unknown) => async (world: World) =>
  world.seen.push(await look(world));
const seesToken = sees(async ({ keeper }) => (await keeper.token()).value);
const seesTroubles = sees(({ keeper }) => keeper.health().troubles);
const seesError = sees(({ errors }) => errors.at(-1));
const seesSent = (least: number, most: number) =>
  sees(({ sent }) => sent.length >= least && sent.length <= most);
/** The generations that a request is sent again with, and whether the last one comes after 2 to 3 s. */
const replays = (from: number) => (world: World) => void replay(from, world);
const tells = (what: 'accepted' | 'refused', generation: number) => (world: World) =>
  world.keeper[what]({ value: '', generation });
const leaves = (state: State) => (world: World) =>
  world.emergency.put(successor(state, pairOf('next'), NOON));
/** An exchange is answered so late. */
const after = (ms: number, flaw?: string) => async (world: World) => {
  await world.time.sleep(ms);
  return { kind: 'granted', pair: pairOf('next'), ...(flaw !== undefined && { flaw }) };
};
/** What happens before an exchange is answered. Default: with the next pair */
const upon = (step: Step, answer?: Exchange) => async (world: World) => {
  await take(step, world);
  return answer;
};

const usualSet = exchanged();
const lostSet: State = { ...exchanged(), lost: true };
const movedSet: State = { ...exchanged(), movedTo: 'elsewhere' };
/** Its access token is the only one: the one before it has expired. */
const aloneSet: State = {
  ...exchanged(),
  previous: { accessToken: 'access-1', generation: 1, expiresAt: NOON },
};
const foreignSet: State = { ...exchanged(), service: 'https://other' };
const refusedSet: State = { ...exchanged(), refusals: 1, refusedAt: NOON, expiresAt: NOON };
const claimed = (set: State) => claimOf('of another process', set.generation)(set, NOON).next!;

test.each<Row>([
  {
    fault:
      'a slow exchange: the old token serves, who needs the new one waits for 30 s, and it is saved',
    set: imported(),
    answers: [after(100_000, 'no new refresh token')],
    happens: [1_000, seesToken, ask, 31_000, seesError, 100_000, seesToken],
    seen: [
      sends(1),
      'access-1',
      gets('UPSTREAM_UNREACHABLE'),
      expect.stringContaining('longer than 30 s'),
      'access-next',
    ],
    // Its life counts from the exchange.
    stored: { generation: 2, claim: null, savedAt: NOON },
    alarms: [/no new refresh token/],
  },
  {
    fault: 'an exchange that ends the access token: its caller gets the new one',
    set: imported(),
    answers: [after(5_000)],
    happens: [1_000, asks('token_revoked'), 5_000],
    seen: [sends(1), gets('access-next')],
  },
  // A token that is seconds old and was never accepted is not renewed by itself.
  ...[[imported(), 'token_revoked'] as const, [exchanged(), 'token_expired'] as const].map(
    ([set, detail]): Row => ({
      fault: `an exchange of another process, and a caller whose refusal begins none (${detail}): it gets the new token`,
      set: claimed(set),
      happens: [10_000, asks(detail), 3_000, wins, 2_000],
      seen: [gets('access-won')],
    }),
  ),
  {
    fault: 'another process saves its pair while a caller reports the expiry: nothing is sent',
    set: claimed(imported()),
    happens: [1_000, { meanwhile: wins }, ask, 1_000],
    seen: [gets('access-won')],
  },
  {
    fault: 'another process has saved its pair: a caller whose token is refused gets it at once',
    happens: [6_000, wins, asks('token_revoked'), 100],
    seen: [gets('access-won')],
  },
  {
    fault: 'another process claims, and gets no pair: who waits for it learns that at once',
    set: claimed(imported()),
    happens: [
      6_000,
      ask,
      1_000,
      puts(endAttempt('of another process', NOT_SENT, '')),
      1_000,
      seesError,
    ],
    seen: [gets('UPSTREAM_UNREACHABLE'), expect.stringContaining('another process has tried')],
    troubles: ['late'],
  },
  {
    fault: 'an exchange without an answer: any refusal of the access token sends once more',
    set: imported(),
    answers: [UNCLEAR],
    happens: [HOUR, seesTroubles, asks('token_revoked'), 1_000],
    seen: [sends(1), ['uncertain'], sends(1), gets('access-next')],
    alarms: [/The service gave no clear answer/],
  },
  {
    fault: 'a process that died: it is waited for, and then the refresh token is sent once more',
    set: claimed(imported()),
    happens: [ask, 61_000, seesError, seesTroubles, 100_000, seesToken],
    seen: [
      gets('UPSTREAM_UNREACHABLE'),
      expect.stringMatching(
        /host\/1 began a refresh at 2026-01-01T12:00:00.*its claim ends at 2026-01-01T12:02:30.*once more/,
      ),
      ['late'],
      sends(1),
      'access-next',
    ],
  },
  ...(
    [
      ['a machine that is suspended after its claim', { suspended: MINUTE }],
      ['a process that is asked to stop after its claim', ({ keeper }) => void keeper.close()],
    ] satisfies [string, Step][]
  ).map(([what, meanwhile]): Row => ({
    fault: `${what}: nothing is sent`,
    set: imported(),
    faults: { meanwhile },
    happens: [100],
    troubles: ['late'],
    stored: { generation: 1, claim: null },
  })),
  {
    fault: 'a process that is asked to stop during its exchange: it ends once the pair is saved',
    set: imported(),
    answers: [upon(({ keeper, seen }) => void keeper.close().then(() => seen.push('closed')))],
    happens: [100],
    seen: [sends(1), 'closed'],
    stored: { generation: 2, claim: null },
  },
  {
    fault: 'another process wins, and saves its pair after this one is refused: that pair is used',
    answers: [
      upon(({ time, ...world }) => time.after(1_500, () => void wins({ time, ...world })), REFUSED),
    ],
    happens: [HOUR, ask, 5_000],
    seen: [sends(2), gets('access-won')],
    stored: { pair: pairOf('won'), refusals: 0 },
  },
  {
    fault:
      'a backup with a spent token: it serves, four refusals are a loss, and the log names the cause',
    answers: [REFUSED, REFUSED, REFUSED, REFUSED],
    happens: [LIFE * 1000 - MINUTE, seesSent(1, 1), HOUR, seesSent(4, 4)],
    seen: [sends(2), true, sends(2), true],
    troubles: ['lost'],
    alarms: [/the store was replaced by an older copy/],
  },
  {
    fault: 'a refusal, and no answer whether the access token works: it serves until its end',
    set: imported(),
    answers: [REFUSED, REFUSED],
    check: { kind: 'unclear', why: 'status 503' },
    happens: [HOUR, seesSent(1, 1)],
    seen: [sends(1), true],
  },
  // New access tokens
  ...(
    [
      ['the token before it', exchanged(), [tells('accepted', 2), replays(2)], [1, 2, 2]],
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
    happens: [tells('accepted', 2), tells('accepted', 1), 6_000, ask, 1],
    seen: [sends(2), gets('access-next')],
  },
  {
    fault:
      'a token that never worked is refused as expired: it is renewed after a minute, and so is the next',
    happens: [tells('accepted', 1), 55_000, ask, 6_000, ask, 55_000, ask, 6_000, ask],
    seen: [
      gets('no other'),
      sends(2),
      gets('access-next'),
      gets('no other'),
      sends('next'),
      gets('access-next'),
    ],
  },
  {
    fault: 'a token that is refused for good: a trouble of the newest alone, until it is accepted',
    happens: [
      [tells('refused', 1), seesTroubles, tells('refused', 2), tells('refused', 2)],
      [
        tells('refused', 1),
        tells('accepted', 1),
        seesTroubles,
        MINUTE,
        tells('accepted', 2),
        MINUTE,
      ],
      sees(({ logged }) => logged.map(({ trouble, level }) => [trouble, level])),
      [tells('refused', 2), MINUTE, sees(({ logged }) => logged.length)],
      [wins, MINUTE, seesTroubles],
    ],
    seen: [[], ['unauthorized'], [['unauthorized', 50]], 2, []],
  },
  {
    fault: 'a refresh token that is sent again in a few seconds: a caller is told when',
    set: { ...refusedSet, savedAt: NOON - MINUTE },
    happens: [tells('accepted', 2), 1_000, ask, 1_000, seesSent(0, 0), 5_000],
    seen: [gets('UPSTREAM_UNREACHABLE'), true, sends(2)],
  },
  {
    fault:
      'a service that cannot be reached for an hour: it is asked within a minute of its return',
    set: imported(),
    faults: { exchange: UNSENT },
    happens: [HOUR, { exchange: undefined }, MINUTE, seesToken],
    seen: [sends(1), 'access-next'],
  },
  {
    fault: 'a service that asks for a pause of 10 minutes: it gets it',
    set: imported(),
    answers: [{ ...UNSENT, retryAfter: 600 }],
    happens: [MINUTE, ask, 1_000, seesError, 534_000, seesSent(1, 1), 30_000, seesToken],
    seen: [
      sends(1),
      gets('UPSTREAM_UNREACHABLE'),
      expect.stringContaining('is sent again later'),
      true,
      sends(1),
      'access-next',
    ],
  },
  // Stores and files
  {
    fault: 'a store that is unavailable at the start: it is used as soon as it is back',
    faults: { read: new StoreUnavailable('nothing listens there') },
    happens: [seesTroubles, ask, 10_000, { read: undefined }, MINUTE, ask, 1_000],
    seen: [['late'], gets('INTERNAL_SERVER_ERROR'), sends(2), gets('access-next')],
  },
  {
    fault: 'a store that is damaged under a running process: one alarm says what helps',
    happens: [{ read: new Error('file is not a database') }, 5 * MINUTE],
    alarms: [/cannot be used.*move the file away/],
  },
  {
    fault:
      'neither store nor folder can be written: the pair is used, and put where it first can be',
    set: imported(),
    answers: [upon({ update: FULL, folder: true })],
    happens: [
      [MINUTE, seesToken, seesTroubles],
      [{ folder: false }, 2_000, sees(({ emergency }) => emergency.read().length)],
      [{ update: undefined }, MINUTE],
    ],
    seen: [sends(1), 'access-next', ['unsaved'], 1],
    stored: { generation: 2, pair: pairOf('next') },
    files: [],
  },
  ...[false, true].map((folder): Row => ({
    fault: `a stop while ${folder ? 'neither store nor folder' : 'the store'} cannot be written: it waits ${folder ? 'until one can' : 'for seconds'}, and leaves a file`,
    set: imported(),
    answers: [upon({ update: FULL, folder })],
    happens: [
      MINUTE,
      ({ keeper, seen }) => void keeper.close().then(() => seen.push('closed')),
      [folder ? MINUTE : 4_000, seesTroubles, { folder: false }, 4_000],
    ],
    seen: [sends(1), ['unsaved'], 'closed'],
    troubles: ['unsaved'],
    files: [{ received: { pair: pairOf('next'), generation: 2 } }],
  })),
  ...[undefined, FULL].map((update): Row => ({
    fault: `another store takes the place of its own${update ? ', which was full' : ''}: the pair stays in its file`,
    set: imported(),
    answers: [upon([{ update }, becomes(imported('other'))])],
    happens: [1_000, { update: undefined }, MINUTE],
    seen: [sends(1), sends('other')],
    files: [{ received: { pair: pairOf('next'), generation: 2 } }],
  })),
  {
    fault: 'a pair that is saved while the store is read is not missing there',
    set: imported(),
    answers: [after(1_000)],
    happens: [
      [800, { slow: 500 }, asks('token_revoked'), 2_000],
      sees(({ logged }) => logged.some(({ msg }) => /put back/.test(String(msg)))),
    ],
    seen: [sends(1), gets('access-next'), false],
  },
  {
    fault: 'emergency files of other stores stay, and the own one goes once its pair is saved',
    happens: [
      1_000,
      async (world) => leaves((await world.store.read()).state!)(world),
      [leaves(exchanged()), MINUTE],
    ],
    // Its life counts from the exchange.
    stored: { generation: 3, pair: pairOf('next'), savedAt: NOON },
    files: [{}],
  },
  {
    fault:
      'a start with an emergency file, and a store that cannot be written: what it has serves until the file is saved',
    left: usualSet,
    faults: { update: FULL },
    happens: [seesToken, seesTroubles, { update: undefined }, MINUTE, seesToken],
    seen: ['access-2', [], 'access-next'],
    stored: { generation: 3, pair: pairOf('next') },
    alarms: [/cannot be used.*no space left/],
    files: [],
  },
  {
    fault:
      'an emergency file that cannot be opened may hold the newest pair: nothing is sent until it is gone',
    happens: [
      ({ emergency }) => writeFileSync(emergency.pathOf({ ...usualSet, generation: 3 }), 'damaged'),
      [20 * HOUR, ask, 1_000],
      seesTroubles,
      ({ emergency }) => rmSync(emergency.pathOf({ ...usualSet, generation: 3 })),
      HOUR,
    ],
    seen: [gets('INTERNAL_SERVER_ERROR'), ['late'], sends(2)],
    alarms: [/unsaved-.* may hold the newest pair, and cannot be read/],
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
    seen: [gets('INTERNAL_SERVER_ERROR')],
    stored: { service: 'https://other', generation: 2, claim: null },
    alarms: [/belongs to https:\/\/other.*Correct the address/],
  },
  ...[null, lostSet].map((set): Row => ({
    fault: `another process imports a set into a store that ${set ? 'has a lost set' : 'is empty'}: it is used`,
    set,
    happens: [MINUTE, puts(importOf('new')), MINUTE, seesToken],
    seen: [sends('new'), 'access-next'],
  })),
  {
    fault: 'a set that was moved: a caller whose token is refused gets no other one',
    set: movedSet,
    happens: [6_000, ask],
    seen: [gets('TOKENS_MISSING')],
    troubles: ['missing'],
  },
  // Imports and links
  {
    fault: 'an import into a store that cannot be written: its error says so',
    set: null,
    faults: { update: FULL },
    happens: [imports('1'), 1],
    seen: [
      expect.stringMatching(
        /^INTERNAL_SERVER_ERROR: The token store cannot be used .*no space left/,
      ),
    ],
    troubles: ['missing'],
  },
  {
    fault: 'an import after an exchange that has just failed: it is exchanged at once',
    set: null,
    answers: [MISTAKE],
    happens: [imports('1'), 1, imports('2', true), 1, seesToken],
    seen: [sends(1), expect.stringMatching('invalid_client'), sends(2), 'imported', 'access-next'],
  },
  ...(
    [
      [null, 1],
      [exchanged(), 4],
    ] as const
  ).map(([set, generation]): Row => ({
    fault: `an import over ${set ? 'a set in use, which is in use again' : 'nothing'}, that proves spent`,
    set,
    answers: [REFUSED],
    check: null,
    happens: [imports('new', true), 3_000],
    seen: [sends('new'), expect.stringMatching(/^TOKENS_LOST: The refresh token does not work/)],
    troubles: set ? [] : ['lost'],
    stored: { generation, pair: pairOf(set ? '2' : 'new') },
  })),
  ...(
    [
      ['is empty', null, [sends('new'), 1]],
      ['has a lost set', lostSet, [sends('new'), 1]],
      ['has a set in use', usualSet, [0]],
      ['has a set that was moved', movedSet, [0]],
    ] as const
  ).map(([what, set, seen]): Row => ({
    fault: `a token link, and a store that ${what}: it is imported and exchanged at once, or not read`,
    set,
    link: 'new',
    happens: [HOUR, sees(({ reads }) => reads())],
    seen,
    troubles: set === movedSet ? ['missing'] : [],
  })),
  ...[
    { link: '1', alarm: /tokens that this store has already seen/ },
    { faults: { link: new Error('It is dead.') }, link: '3', alarm: /It is dead/ },
  ].map(({ alarm, ...row }): Row => ({
    fault: `a token link that cannot replace a lost set: one alarm (${alarm.source})`,
    set: lostSet,
    ...row,
    happens: [HOUR],
    troubles: ['lost'],
    alarms: [alarm],
  })),
  {
    fault: 'a token link that cannot be read now is read again twice a minute, and imported',
    set: null,
    link: 'new',
    faults: { link: new Error('The service is down.') },
    happens: [
      [ask, HOUR, sees(({ reads }) => reads() > 100 && reads() < 130)],
      [{ link: undefined }, MINUTE, seesToken],
    ],
    seen: [gets('TOKENS_MISSING'), true, sends('new'), 'access-next'],
  },
  // The client
  {
    fault:
      'a service that refuses the client: asked again every 10 s, its words everywhere, until corrected',
    set: null,
    faults: { exchange: MISTAKE },
    happens: [
      [imports('1'), HOUR, seesSent(300, 400), ask, 1_000, seesError],
      [seesTroubles, { exchange: undefined }, MINUTE],
    ],
    seen: [
      sends(1),
      expect.stringMatching(/^UPSTREAM_UNAUTHORIZED: .*invalid_client.*The pair is kept/),
      sends(1),
      true,
      gets('UPSTREAM_UNAUTHORIZED'),
      expect.stringContaining(MISTAKE.why),
      ['late'],
      sends(1),
    ],
    alarms: [/status 401 \(invalid_client\)/],
  },
  // Clocks
  ...[DAY, -DAY].map((ms): Row => ({
    fault: `the clock of the store jumps by ${ms / DAY} day, and back: one exchange at most`,
    happens: [{ ahead: ms }, 10 * MINUTE, seesTroubles, { ahead: 0 }, 10 * MINUTE],
    seen: ms > 0 ? [sends(2), []] : [[]],
  })),
  {
    fault: 'the clock of the store is set back: a token that is refused as expired is renewed',
    happens: [{ ahead: -DAY }, 1_000, ask, 1_000],
    seen: [sends(2), gets('access-next')],
  },
  {
    fault: 'the clock of the store jumps beyond the end of the set: lost, until it is corrected',
    happens: [{ ahead: 365 * DAY }, 10 * MINUTE, seesTroubles, ask, 1_000, { ahead: 0 }, MINUTE],
    seen: [['lost'], gets('TOKENS_LOST')],
  },
  {
    fault:
      'a set that nears its end: warned of 30, 14, 7, 3 and 1 days before, and never sent after it',
    faults: { exchange: UNSENT },
    happens: [
      ...[31, 30, 29, 15, 14, 13, 7, 6, 3, 2, 1, 0.5].flatMap((left) => [
        { ahead: (120 - left) * DAY },
        MINUTE,
      ]),
      sees(({ logged }) =>
        logged.flatMap(({ trouble, days }) => (trouble === 'ending' ? days : [])),
      ),
      [{ ahead: 120 * DAY }, 10 * MINUTE],
      sees(({ keeper }) => keeper.health().refreshSecondsLeft),
    ],
    seen: [sends(2), [30, 14, 7, 3, 1], 0],
    troubles: ['lost'],
    alarms: [/reached its end/],
  },
])('$fault', async (row) => {
  const world = await worldOf(row);
  await take([row.happens, 0], world);
  const { seen, emergency, store, keeper } = world;
  expect({ seen, troubles: keeper.health().troubles }).toEqual({
    seen: row.seen ?? [],
    troubles: row.troubles ?? [],
  });
  expect((await store.read()).state ?? {}).toMatchObject(row.stored ?? {});
  for (const alarm of row.alarms ?? []) {
    const lines = world.logged.filter(({ level }) => Number(level) >= 50);
    expect(lines.filter((line) => alarm.test(JSON.stringify(line)))).toHaveLength(1);
  }
  if (row.files) expect(emergency.read()).toMatchObject(row.files);
});

/** `Array.isArray` does not narrow lists that are readonly. */
const isList = (step: Step): step is readonly Step[] => Array.isArray(step);

async function take(step: Step, world: World): Promise<void> {
  if (isList(step)) for (const each of step) await take(each, world);
  else if (typeof step === 'number') await world.time.pass(step);
  else if (typeof step === 'function') await step(world);
  else Object.assign(world.faults, step);
}

async function replay(from: number, { keeper, seen, time }: World): Promise<void> {
  const begun = time.now;
  let token: AccessToken | undefined = { value: '', generation: from };
  for (let count = 0; ; count += 1) {
    token = await keeper.afterRefusal(token, 'token_expired', count);
    if (!token) break;
    seen.push(token.generation);
  }
  seen.push(time.now - begun > 2_000 && time.now - begun < 3_000);
}

type World = Awaited<ReturnType<typeof worldOf>>;

/** A store, a service, a folder and a clock for a keeper, which is started. */
async function worldOf({
  set = usualSet,
  answers = [],
  check = { kind: 'works' },
  link,
  left,
  ...row
}: Omit<Row, 'fault' | 'happens'>) {
  const faults: Faults = { ...row.faults };
  const time = new VirtualTime();
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const { log, logged } = recordingLog();
  const seen: unknown[] = [];
  const sent: unknown[] = [];
  const errors: string[] = [];
  let reads = 0;
  const readLink = async (name: string) => {
    reads += 1;
    if (faults.link) throw faults.link;
    return pairOf(name);
  };
  const now = () => NOON + time.now;
  const store = memoryStore(() => now() + (faults.ahead ?? 0));
  if (set) await store.update(() => ({ next: set, result: undefined }));
  const emergency = emergencyIn(folder.path, createSealer([]));
  if (left) emergency.put(successor(left, pairOf('next'), NOON));
  const keeper = new TokenKeeper({
    store: {
      ...store,
      read: async () => {
        if (faults.read) throw faults.read;
        const reading = await store.read();
        if (faults.slow !== undefined) await time.sleep(faults.slow);
        return reading;
      },
      update: async (rule) => {
        const { meanwhile = 0 } = faults;
        faults.meanwhile = undefined;
        if (meanwhile !== 0) await take(meanwhile, world);
        if (faults.update) throw faults.update;
        return store.update(rule);
      },
    },
    service: {
      exchange: async ({ refreshToken }, maySend) => {
        if (!maySend()) return UNSENT;
        const answer = faults.exchange ?? answers[sent.length];
        const line = `${refreshToken} is sent`;
        sent.push(line);
        if (seen.at(-1) !== line) seen.push(line);
        const given: unknown = typeof answer === 'function' ? await answer(world) : answer;
        return (given ?? { kind: 'granted', pair: pairOf('next') }) as Exchange;
      },
      ...(check && { check: async () => check }),
    },
    emergency: {
      ...emergency,
      put: (received) => faults.folder !== true && emergency.put(received),
    },
    serviceUrl: values.SERVICE,
    by: 'test/1',
    meansExpired: (detail) => detail === 'token_expired',
    clock: {
      now: () => now() + (faults.suspended ?? 0),
      elapsed: () => time.now,
      sleep: sleepIn(time),
      timer: () => () => {},
    },
    log,
    link: link === undefined ? undefined : { read: () => readLink(link) },
  });
  await keeper.open();
  onTestFinished(async () => {
    const closed = keeper.close();
    await time.pass(3 * MINUTE);
    await closed;
  });
  const request = async (detail: string) => {
    try {
      const token = await keeper.afterRefusal(await keeper.token(), detail, 0);
      seen.push(gets(token?.value ?? 'no other'));
    } catch (error) {
      seen.push(gets(String(codeOf(error))));
      errors.push((error as Error).message);
    }
  };
  const world = {
    time,
    faults,
    store,
    emergency,
    keeper,
    logged,
    ask: request,
    /** The messages of the errors that callers got. */
    errors,
    /** How often the link was read. */
    reads: () => reads,
    /** Equal lines about what is sent that follow one another are one in `seen`. */
    sent,
    seen,
  };
  return world;
}
