/** The token set as a value: each test is a state, a rule, and what follows, or what is said of the state. */
import { describe, expect, test } from 'vitest';
import { endIsNear, healthOf, lineOn, troublesOf, type Trouble } from '../../src/tokens/health.ts';
import { STEPS } from '../../src/setup/custody.ts';
import {
  CLAIM_MS,
  dueAt,
  endAttempt,
  expired,
  fingerprintOf,
  isLost,
  isSpentIfRefused,
  moveTo,
  receiveMove,
  save,
  successor,
  takeClaim,
  type Ending,
  type Rule,
  type State,
} from '../../src/tokens/state.ts';
import { DAY, HOUR, MINUTE } from '../support/random/manual-clock.ts';
import { claimOf, exchanged, imported, importOf, LIFE, NOON, pairOf, saveOf } from './values.ts';

const EXPIRY = NOON + LIFE * 1000;
const TWO_THIRDS = NOON + (LIFE * 1000 * 2) / 3;
const END = NOON + 120 * DAY;
/** A claim of noon is over. */
const OVER = NOON + CLAIM_MS;
const LAST_MINUTES = EXPIRY - 5 * MINUTE;

/** Runs rules one after the other at one time. */
function after(state: State, now: number, ...rules: readonly Rule<unknown>[]): State {
  return rules.reduce((before, rule) => rule(before, now).next ?? before, state);
}

const end = (attempt: string, ending: Ending) => endAttempt(attempt, ending, 'host/1');
const PAIR = '{"access_token":"access-3","refresh_token":"refresh-3"}';
const UNCLEAR: Ending = { kind: 'unclear', answer: null };
const REFUSED: Ending = { kind: 'refused' };
const LOST: Ending = { kind: 'lost' };
const UNSENT: Ending = { kind: 'not exchanged' };

const state = exchanged();
const lost = { ...state, lost: true };
const moved = { ...state, movedTo: 'there' };
const claimed = after(state, NOON, claimOf('a', 2));
const uncertain = after(claimed, NOON, end('a', UNCLEAR));
const refusedOnce = after(claimed, NOON + HOUR, end('a', REFUSED));
const refusedAgain = after(refusedOnce, EXPIRY + 5_000, claimOf('b', 2), end('b', REFUSED));
const replacing = importOf('new', true)(state, NOON).next!;

const shortLived = { ...state.pair, refreshTokenExpiresIn: 3_600 };

test.each<[when: string, state: State, due: number, now?: number]>([
  ['at two thirds of the life', state, TWO_THIRDS],
  [
    'at two thirds of its own life, if that is shorter',
    { ...state, pair: shortLived },
    NOON + HOUR / 1.5,
    NOON,
  ],
  ['at once after an import', imported(), 0],
  ['at the expiry where the service refuses earlier', { ...state, refusesEarly: true }, EXPIRY],
  ['5 minutes before the expiry while it is uncertain', uncertain, LAST_MINUTES],
  ['not while a claim of another process lives', claimed, LAST_MINUTES],
  ['5 s after the expiry once it was refused', refusedOnce, EXPIRY + 5_000],
  ['a minute after the second refusal', refusedAgain, EXPIRY + 5_000 + MINUTE, EXPIRY + 5_000],
  ['not before the service wants it', { ...state, notBefore: EXPIRY }, EXPIRY, EXPIRY - MINUTE],
])('a refresh token is due %s', (_when, given, due, now = NOON + HOUR) => {
  expect(dueAt(given, now)).toBe(due);
});

describe('a claim', () => {
  const own = claimOf('a', 2);
  const others = claimOf('b', 2, 'a');
  const recovers = { attempt: 'a', generation: 2, over: null, by: 'office/1', evenIfLost: true };

  test.each<[string, State, now: number, ReturnType<typeof claimOf>, isGranted: boolean]>([
    ['is granted again to its own attempt', claimed, NOON, own, true],
    ['is refused again to its own attempt once it is over', claimed, OVER, own, false],
    ['is refused while another lives', claimed, OVER - 1, others, false],
    ['is granted after a dead one to who knows of it', claimed, OVER, others, true],
    ['is refused after a dead one to who does not', claimed, OVER, claimOf('b', 2), false],
    ['is granted where another is dated ahead', claimed, NOON - HOUR, others, true],
    ['is refused for a set that was moved', moved, NOON, own, false],
    ['is refused for a set that is lost', lost, NOON, own, false],
    ['is granted for it to `tokens recover`', lost, NOON, takeClaim(recovers), true],
    ['is refused after the end of the refresh token', state, END, own, false],
    ['is refused in a pause', { ...state, notBefore: NOON + MINUTE }, NOON, own, false],
    ['is granted after a pause', { ...state, notBefore: NOON }, NOON, own, true],
  ])('%s', (_what, before, now, rule, isGranted) => {
    expect(rule(before, now).result).toBe(isGranted);
  });

  test('that is ended twice, because the first commit seemed to fail, ends once', () => {
    expect(end('a', UNCLEAR)(uncertain, NOON)).toEqual({ result: uncertain });
  });

  test('after which nothing was sent leaves a refresh token uncertain that was so before', () => {
    expect(after(uncertain, OVER, others, end('b', UNSENT)).claim).toEqual(uncertain.claim);
  });

  test('keeps an answer that was not understood until its pair has a successor, whatever later tries give', () => {
    const kept: Ending = { kind: 'unclear', answer: 'perhaps a pair' };
    for (const ending of [REFUSED, UNCLEAR, LOST]) {
      const later = after(state, NOON, own, end('a', kept), others, end('b', ending));
      expect(later.answer).toBe('perhaps a pair');
      expect(after(later, NOON, saveOf(later, '3')).answer).toBeNull();
    }
  });

  test.each([
    ['that has no pair is replaced by a later one', 'busy', PAIR, PAIR],
    ['that has a pair stays when a later one has none', PAIR, 'busy', PAIR],
    ['stays when nothing arrives later', 'busy', null, 'busy'],
  ])('an answer that was not understood: one %s', (_, first, second, kept) => {
    const [before, behind] = [first, second].map((answer): Ending => ({ kind: 'unclear', answer }));
    const later = after(state, NOON, own, end('a', before!), others, end('b', behind!));
    expect(later.answer).toBe(kept);
  });
});

describe('a pair that is saved', () => {
  const received = successor(refusedOnce, pairOf('3'), NOON - MINUTE);
  const next = save(received, 'host/1')(refusedOnce, NOON).result;

  test('ends refusals, counts its life from the exchange, and keeps the access token before it', () => {
    expect(next).toMatchObject({
      generation: 3,
      savedAt: NOON - MINUTE,
      expiresAt: EXPIRY - MINUTE,
      previous: { accessToken: 'access-2', generation: 2, expiresAt: EXPIRY },
      refusals: 0,
      // What the service accepts after it has refused it, it had refused as too early.
      refusesEarly: true,
    });
    expect(after(next, NOON, saveOf(next, '4')).refusesEarly).toBe(true);
  });

  test.each<[string, State | null, State | undefined]>([
    ['returns to an emptied store, with its history', null, claimed],
    ['returns to an older copy, with the history there', { ...imported(), id: state.id }, claimed],
    ['is not saved twice', claimed, undefined],
    ['replaces no newer one', { ...next, id: state.id }, undefined],
    ['replaces no pair of another store', imported('9'), undefined],
  ])('%s', (_what, stored, expected) => {
    const { next: written } = save(claimed, 'host/1')(stored, NOON);
    const { events: _, ...put } = expected ?? {};
    expect(written).toEqual(expected && { ...put, events: expect.any(Array) });
    const events = (stored ?? claimed).events.length + 1;
    expect(written?.events.length).toBe(expected && events);
  });

  test('during an import is what the import would be withdrawn to', () => {
    const during = after(replacing, NOON, saveOf(state, '3'));
    expect(during.pair).toEqual(pairOf('new'));
    const withdrawn = after(during, NOON, claimOf('a', during.generation), end('a', LOST));
    expect(withdrawn).toMatchObject({ pair: pairOf('3'), lost: false, set: state.set });
  });
});

describe('a refusal', () => {
  test('of an import is a loss the second time, and what it replaced is in use again', () => {
    const first = after(replacing, NOON, expired(3), claimOf('a', 3), end('a', REFUSED));
    expect([isSpentIfRefused(first), dueAt(first, NOON)]).toEqual([true, NOON + 5_000]);
    const second = after(first, NOON + 5_000, claimOf('b', 3), end('b', LOST));
    const { pair, set } = state;
    expect(second).toMatchObject({ pair, set, generation: 4, lost: false, imported: false });
    expect(second.events[0]!.what).toBe('withdrawn');
  });

  test('of an import over a lost set is a loss: nothing was replaced that could be in use again', () => {
    const next = after(lost, NOON, importOf('new'), claimOf('a', 3), end('a', LOST));
    expect(next).toMatchObject({ pair: pairOf('new'), lost: true });
  });

  test('of an import that replaced an uncertain set leaves that set uncertain', () => {
    const replaced = after(uncertain, NOON, importOf('new', true), claimOf('b', 3), end('b', LOST));
    expect(replaced).toMatchObject({ set: uncertain.set, claim: uncertain.claim });
  });

  test('of an access token as expired moves its expiry, and never back', () => {
    expect(after(state, NOON, expired(2)).expiresAt).toBe(NOON);
    expect([expired(1)(state, NOON).next, expired(2)(state, EXPIRY).next]).toEqual([
      undefined,
      undefined,
    ]);
  });
});

test('an import begins another set, and keeps the id of the store, its history and what it learned', () => {
  const early = importOf('new', true)({ ...state, refusesEarly: true }, NOON).next!;
  expect(early).toMatchObject({ id: state.id, generation: 3, imported: true, refusesEarly: true });
  expect(early.set).not.toBe(state.set);
  expect(early.events.map(({ what }) => what)).toEqual(['imported', 'saved', 'imported']);
  expect(early.events[0]!.fingerprint).toBe(fingerprintOf(pairOf('new')));
});

test.each<[string, State, ReturnType<typeof importOf>, string]>([
  ['with a set in use', state, importOf('new'), 'in use'],
  ['with a lost set', lost, importOf('new'), 'imported'],
  ['whose set was moved', moved, importOf('new'), 'imported'],
  ['that has seen the refresh token', lost, importOf('1', true), 'known'],
])('an import into a store %s', (_what, before, rule, result) => {
  expect(rule(before, NOON).result).toBe(result);
});

describe('a move', () => {
  test.each<[string, State]>([
    ['of a lost set', lost],
    ['during an exchange', claimed],
    ['of an uncertain set', uncertain],
    ['to a second store', { ...state, movedTo: 'elsewhere' }],
  ])('%s is refused', (_what, before) => {
    expect(moveTo('target', 'office/1')(before, NOON)).toEqual({ result: null });
  });

  test('can be finished after a crash, and gives the set one owner', () => {
    const source = after(state, NOON, moveTo('target', 'office/1'));
    const again = moveTo('target', 'office/1')(source, NOON).result;
    expect(again).toEqual(source);
    const target = receiveMove(source, 'office/1')(null, NOON).next!;
    const { pair, set } = state;
    expect(target).toMatchObject({ pair, set, movedTo: null, savedAt: NOON });
    expect(receiveMove(source, 'office/1')(target, NOON)).toEqual({ result: 'placed' });
    expect(claimOf('a', source.generation)(source, NOON).result).toBe(false);
    expect(claimOf('a', target.generation)(target, NOON).result).toBe(true);
  });

  test.each<[string, State, object]>([
    ['with a lost set', { ...lost, set: 'other', generation: 9 }, { generation: 10, lost: false }],
    ['with a set in use', { ...state, set: 'other' }, {}],
  ])('into a store %s', (_what, before, expected) => {
    const { next, result } = receiveMove(state, 'office/1')(before, NOON);
    expect(next ?? {}).toMatchObject(expected);
    expect(result).toBe(next ? 'placed' : 'in use');
  });
});

test('a set is lost after the end of its refresh token, 120 days after its exchange', () => {
  expect([isLost(state, END - 1), isLost(state, END)]).toEqual([false, true]);
});

test('the audit trail keeps 200 events and no token', () => {
  let next = state;
  for (let name = 3; name < 300; name += 1) next = saveOf(next, String(name))(next, NOON).result;
  expect(next.events).toHaveLength(200);
  expect(JSON.stringify(next.events)).not.toMatch(/(access|refresh)-/);
});

/** A set whose refresh token was refused once, and whose access token ends then. */
const refused = (expiresAt: number) => ({ ...state, refusals: 1, refusedAt: NOON, expiresAt });
const known = { isUnsaved: false, isUnauthorized: false };

test.each<[what: string, state: State | null, now: number, troubles: Trouble[], facts?: object]>([
  ['a healthy set', state, NOON + HOUR, []],
  ['a set whose refresh was due a moment ago', state, TWO_THIRDS + 9 * MINUTE, []],
  ['a set whose refresh was due 11 minutes ago', state, TWO_THIRDS + 11 * MINUTE, ['late']],
  ['an exchange', claimed, NOON + MINUTE, []],
  ['an exchange without a clear answer', uncertain, NOON, ['uncertain']],
  ['a store without tokens', null, NOON, ['missing']],
  ['a store that was never read', null, NOON, ['late'], { isUnread: true }],
  ['a set that was moved', moved, NOON, ['missing']],
  ['a set that is lost', lost, NOON, ['lost']],
  ['a set that is lost after a lost answer', { ...uncertain, lost: true }, NOON, ['lost']],
  ['a set after its end', state, END, ['lost']],
  ['a set a day before its end', state, END - DAY, ['late', 'ending']],
  ['an import that is not exchanged', imported(), NOON + 11 * MINUTE, ['late']],
  [
    'a claim that leaves callers without an access token',
    after(state, EXPIRY - 31_000, claimOf('a', 2)),
    EXPIRY + 31_000,
    ['late'],
  ],
  ['a set of which both tokens are refused', refused(NOON), NOON + 31_000, ['late']],
  ['an early refusal', refused(NOON + 2 * HOUR), NOON + HOUR, []],
  ['an unsaved pair', state, NOON, ['unsaved'], { isUnsaved: true }],
  ['a refused access token', state, NOON, ['unauthorized'], { isUnauthorized: true }],
  ['a lost set, and a refused token', lost, NOON, ['lost'], { isUnauthorized: true }],
])('the troubles of %s', (_what, given, now, troubles, facts = {}) => {
  expect(troublesOf(given, { now, ...known, ...facts })).toEqual(troubles);
});

test.each<[Trouble, State | null, RegExp]>([
  ['missing', null, /^The token store is empty\. If TOKEN_STORE names/],
  ['missing', moved, /was moved to another store \(there\).*Set TOKEN_STORE to that one/],
  ['lost', lost, /an older copy of it\. If `tokens recover` finds no pair.*`tokens import <link>`/],
  ['unauthorized', state, /demoted or blocked\. Have the account checked/],
])('the line on the trouble %s names its cause and what helps', (trouble, given, line) => {
  expect(lineOn(trouble, given, STEPS)).toMatch(line);
});

test('no end is near right after a refresh, however short the life is', () => {
  for (const days of [0.5, 2, 4, 10, 30, 60]) {
    const pair = { ...state.pair, refreshTokenExpiresIn: days * 86_400 };
    expect(endIsNear({ ...state, pair }, NOON)).toBeUndefined();
  }
});

test('a lost refresh token has no time left', () => {
  const facts = { now: NOON, ...known };
  expect(healthOf(state, facts).refreshSecondsLeft).toBe(120 * 86_400);
  expect(healthOf({ ...state, lost: true }, facts).refreshSecondsLeft).toBe(0);
});
