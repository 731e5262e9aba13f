/** The rules of the token set as values: each test is a state, a rule, and what follows. */
import { describe, expect, test } from 'vitest';
import {
  CLAIM_MS,
  dueAt,
  endAttempt,
  expired,
  fingerprintOf,
  isLost,
  isSpentIfRefused,
  isUncertain,
  moveTo,
  putBack,
  receiveMove,
  save,
  successor,
  takeClaim,
  type Ending,
  type Rule,
  type State,
} from '../../src/tokens/state.ts';
import { claimOf, exchanged, imported, importOf, LIFE, NOON, pairOf, saveOf } from './values.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const EXPIRY = NOON + LIFE * 1000;
const TWO_THIRDS = NOON + (LIFE * 1000 * 2) / 3;
const LAST_MINUTES = EXPIRY - 5 * MINUTE;

/** Runs rules one after the other at one time. */
function after(state: State, now: number, ...rules: readonly Rule<unknown>[]): State {
  return rules.reduce((before, rule) => rule(before, now).next ?? before, state);
}

const end = (attempt: string, ending: Ending) => endAttempt(attempt, ending, 'host/1');
const UNCLEAR: Ending = { kind: 'unclear', why: 'cut', answer: null };
const REFUSED: Ending = { kind: 'refused', isExpired: false };
const LOST: Ending = { kind: 'lost', isExpired: true };
const UNSENT: Ending = { kind: 'not exchanged' };

const state = exchanged();
const lost = { ...state, lost: true };
const claimed = after(state, NOON, claimOf('a', 2));
const uncertain = after(claimed, NOON, end('a', UNCLEAR));
const refusedOnce = after(claimed, NOON + HOUR, end('a', REFUSED));
const refusedAgain = after(refusedOnce, EXPIRY + 5_000, claimOf('b', 2), end('b', REFUSED));
const setBack = { savedAt: NOON + 25 * HOUR };
const replacing = importOf('new', true)(state, NOON).next!;

describe('when a refresh token is due', () => {
  const short = { ...state.pair, refreshTokenExpiresIn: 3_600 };

  test.each<[when: string, state: State, due: number, now?: number]>([
    ['at two thirds of the life', state, TWO_THIRDS],
    [
      'at two thirds of its own life, if that is shorter',
      { ...state, pair: short },
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
    // A pause, a save and an expiry that lie ahead are from before the clock was set back.
    [
      'at its time, whatever pause was asked for then',
      { ...state, notBefore: NOON + 3 * DAY },
      TWO_THIRDS,
    ],
    ['at once where the clock was set back by a day', { ...state, ...setBack }, 0],
    [
      '5 s after a refusal where the clock was set back by a day before it',
      { ...refusedOnce, ...setBack, expiresAt: EXPIRY + DAY },
      NOON + HOUR + 5_000,
    ],
  ])('%s', (_when, given, due, now = NOON + HOUR) => {
    expect(dueAt(given, now, 0)).toBe(due);
  });

  test('replicas do not all wake up at once: the jitter is 5 % at most', () => {
    const [latest, earliest] = [dueAt(state, NOON, 0), dueAt(state, NOON, 1)];
    expect(latest - earliest).toBeCloseTo(((LIFE * 1000 * 2) / 3) * 0.05);
  });
});

describe('a claim', () => {
  const others = claimOf('b', 2, 'a');
  const own = claimOf('a', 2);
  const dead = NOON + CLAIM_MS;

  test.each<[string, State, now: number, ReturnType<typeof claimOf>, isGranted: boolean]>([
    ['is granted', state, NOON, own, true],
    ['is granted again to its own attempt', claimed, NOON, own, true],
    ['is refused for an older generation', state, NOON, claimOf('a', 1), false],
    ['is refused while another lives, whoever made it', claimed, dead - 1, others, false],
    ['is granted after a dead one to who knows of it', claimed, dead, others, true],
    ['is refused after a dead one to who does not', claimed, dead, claimOf('b', 2), false],
    ['is granted after one without an answer', uncertain, NOON, others, true],
    ['is granted where another is dated ahead', claimed, NOON - HOUR, others, true],
    ['is refused for a set that was moved', { ...state, movedTo: 'there' }, NOON, own, false],
    ['is refused for a set that is lost', lost, NOON, own, false],
    ['is refused after the end of the refresh token', state, NOON + 121 * DAY, own, false],
    ['is refused in a pause', { ...state, notBefore: NOON + MINUTE }, NOON, own, false],
    [
      'is granted for a lost set to `tokens recover`, which has nothing to lose',
      lost,
      NOON,
      takeClaim({ attempt: 'a', generation: 2, over: null, by: 'office/1', evenIfLost: true }),
      true,
    ],
  ])('%s', (_what, before, now, rule, isGranted) => {
    expect(rule(before, now).result).toBe(isGranted);
  });

  test('after which a refresh token must not be sent again is a loss once it is over, until its pair is saved', () => {
    const request = { attempt: 'a', generation: 2, over: null, by: 'host/1', isFinal: true };
    const only = after(state, NOON, takeClaim(request));
    expect([isLost(only, NOON), isLost(only, dead)]).toEqual([false, true]);
    expect(others(only, dead).result).toBe(false);
    const ended = [after(only, NOON, end('a', UNSENT)), after(only, dead, saveOf(state, '3'))];
    expect(ended.map((next) => isLost(next, dead))).toEqual([false, false]);
  });

  test('makes the refresh token uncertain once it is over, or without a clear answer', () => {
    expect([isUncertain(claimed, NOON), isUncertain(claimed, dead)]).toEqual([false, true]);
    expect(isUncertain(uncertain, NOON)).toBe(true);
    expect(after(claimed, NOON, end('a', UNSENT)).claim).toBeNull();
  });

  test('that is ended twice, because the first commit seemed to fail, ends once', () => {
    expect(end('a', UNCLEAR)(uncertain, NOON)).toEqual({ result: uncertain });
  });

  test('after which nothing was sent leaves a refresh token uncertain that was so before', () => {
    expect(after(uncertain, dead, others, end('b', UNSENT)).claim).toEqual(uncertain.claim);
  });

  test('keeps an answer that was not understood until its pair has a successor, whatever later tries give', () => {
    const kept: Ending = { kind: 'unclear', why: 'status 500', answer: 'perhaps a pair' };
    for (const ending of [REFUSED, UNCLEAR, LOST]) {
      const later = after(state, NOON, own, end('a', kept), others, end('b', ending));
      expect(later.answer).toBe('perhaps a pair');
      expect(after(later, NOON, saveOf(later, '3')).answer).toBeNull();
    }
  });
});

describe('saving a pair', () => {
  test('never depends on the claim, and keeps the access token before it until that expires', () => {
    const next = saveOf(state, '3')(after(state, NOON, claimOf('other', 2)), NOON).result;
    const previous = { accessToken: 'access-2', generation: 2, expiresAt: EXPIRY };
    expect(next).toMatchObject({ generation: 3, pair: pairOf('3'), claim: null, previous });
  });

  test('is the same when it is repeated, and an older pair replaces nothing', () => {
    const next = saveOf(state, '3')(state, NOON).result;
    expect(saveOf(state, '3')(next, NOON)).toEqual({ result: next });
    const first = { ...imported(), id: state.id };
    expect(save(successor(first, pairOf('1b')), 0, 'host/1')(next, NOON)).toEqual({ result: next });
  });

  test('ends a loss', () => {
    const next = saveOf(state, '3')({ ...lost, refusals: 4 }, NOON).result;
    expect(next).toMatchObject({ generation: 3, lost: false, refusals: 0 });
  });

  test('counts its life from the exchange, not from the save', () => {
    const next = save(successor(state, pairOf('3')), MINUTE, 'host/1')(state, NOON).result;
    expect(next).toMatchObject({ savedAt: NOON - MINUTE, expiresAt: EXPIRY - MINUTE });
  });

  test('after a refusal teaches that the service refuses early', () => {
    const next = saveOf(refusedOnce, '3')(refusedOnce, EXPIRY).result;
    expect(next).toMatchObject({ refusesEarly: true, refusals: 0 });
  });

  test('during an import replaces what the import would be withdrawn to', () => {
    const next = after(replacing, NOON, saveOf(state, '3'));
    expect(next.pair).toEqual(pairOf('new'));
    const withdrawn = after(next, NOON, claimOf('a', next.generation), end('a', LOST));
    expect(withdrawn).toMatchObject({ pair: pairOf('3'), lost: false, set: state.set });
  });
});

describe('putting a pair back', () => {
  test.each<[string, State | null, boolean]>([
    ['into an emptied store', null, true],
    ['into an older copy', { ...imported(), id: state.id }, true],
    ['not into a store that has it', state, false],
    ['not into a store that has a newer one', saveOf(state, '3')(state, NOON).result, false],
    ['not into another store', imported('9'), false],
  ])('%s', (_where, stored, isPutBack) => {
    expect(putBack(state, 'host/1')(stored, NOON).next !== undefined).toBe(isPutBack);
  });

  test('puts back the claim that is known, so that nobody sends in its time', () => {
    const stored = putBack(claimed, 'host/1')(null, NOON).next!;
    expect(claimOf('b', 2, 'a')(stored, NOON).result).toBe(false);
  });
});

describe('a refusal', () => {
  const refusedNow: Ending = { kind: 'refused', isExpired: true };

  test('is a loss only as the last of four after the expiry', () => {
    let next = state;
    const seen = [isSpentIfRefused(next)];
    for (const attempt of ['a', 'b', 'c']) {
      next = after(next, EXPIRY, claimOf(attempt, 2), end(attempt, refusedNow));
      seen.push(isSpentIfRefused(next));
    }
    expect(seen).toEqual([false, false, false, true]);
  });

  test('of an import is a loss the second time, and what it replaced is in use again', () => {
    const first = after(replacing, NOON, claimOf('a', 3), end('a', refusedNow));
    expect([isSpentIfRefused(first), dueAt(first, NOON, 0)]).toEqual([true, NOON + 5_000]);
    const second = after(first, NOON + 5_000, claimOf('b', 3), end('b', LOST));
    const { pair, set } = state;
    expect(second).toMatchObject({ pair, set, generation: 4, lost: false });
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

  test('of an access token as expired moves its expiry', () => {
    expect(after(state, NOON, expired(2)).expiresAt).toBe(NOON);
    expect(expired(1)(state, NOON).next).toBeUndefined();
  });
});

test('an import into the store of another service is refused', () => {
  const foreign = { ...state, service: 'https://other' };
  expect(importOf('new', true)(foreign, NOON)).toEqual({ result: 'foreign' });
});

test('an import begins another set, and keeps the id of the store and its history', () => {
  expect(replacing).toMatchObject({ id: state.id, generation: 3, imported: true });
  expect(replacing.set).not.toBe(state.set);
  expect(replacing.events.map(({ what }) => what)).toEqual(['imported', 'saved', 'imported']);
  expect(replacing.events[0]!.fingerprint).toBe(fingerprintOf(pairOf('new')));
});

describe('a move', () => {
  test.each<[string, State, string]>([
    ['of a lost set is refused', lost, 'lost'],
    ['during an exchange is refused', claimed, 'under way'],
    ['of an uncertain set is refused', uncertain, 'uncertain'],
  ])('%s', (_what, before, kind) => {
    expect(moveTo('target', 'office/1')(before, NOON).result.kind).toBe(kind);
  });

  test('can be finished after a crash, gives the set one owner, and shifts its times to the clock there', () => {
    const source = after(state, NOON, moveTo('target', 'office/1'));
    const again = moveTo('target', 'office/1')(source, NOON).result;
    expect(again).toEqual({ kind: 'moved', state: source });
    const target = receiveMove(source, HOUR, 'office/1')(null, NOON - HOUR).next!;
    const { pair, set } = state;
    expect(target).toMatchObject({ pair, set, movedTo: null, savedAt: NOON - HOUR });
    expect(receiveMove(source, HOUR, 'office/1')(target, NOON)).toEqual({ result: 'placed' });
    expect(claimOf('a', source.generation)(source, NOON).result).toBe(false);
    expect(claimOf('a', target.generation)(target, NOON - HOUR).result).toBe(true);
  });

  test('into a store with a lost set grows its generation', () => {
    const { next } = receiveMove(
      state,
      0,
      'office/1',
    )({ ...lost, set: 'another', generation: 9 }, NOON);
    expect(next).toMatchObject({ generation: 10, set: state.set, lost: false });
  });
});

test('a set is lost after the end of its refresh token, 120 days after its exchange', () => {
  expect(isLost(state, NOON + 120 * DAY - 1)).toBe(false);
  expect(isLost(state, NOON + 120 * DAY)).toBe(true);
});

test('the audit trail keeps 200 events and no token', () => {
  let next = state;
  for (let name = 3; name < 300; name += 1) next = saveOf(next, String(name))(next, NOON).result;
  expect(next.events).toHaveLength(200);
  expect(JSON.stringify(next.events)).not.toMatch(/(access|refresh)-/);
});
