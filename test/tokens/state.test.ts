import { describe, expect, test } from 'vitest';
import {
  CLAIM_MS,
  dueAt,
  endAttempt,
  expired,
  fingerprintOf,
  isLive,
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

/** Runs rules one after the other at one time. */
function after(state: State, now: number, ...rules: readonly Rule<unknown>[]): State {
  return rules.reduce((before, rule) => rule(before, now).next ?? before, state);
}

const unclear: Ending = { kind: 'unclear', why: 'cut', answer: null };
const refused = (isExpired = false): Ending => ({ kind: 'refused', isExpired });

describe('when a refresh token is due', () => {
  const state = exchanged();
  const claimed = after(state, NOON, claimOf('a', 2));
  const uncertain = after(claimed, NOON, endAttempt('a', unclear, 'host/1'));
  const refusedOnce = after(claimed, NOON + HOUR, endAttempt('a', refused(), 'host/1'));
  const refusedAgain = after(
    refusedOnce,
    EXPIRY + 5_000,
    claimOf('b', 2),
    endAttempt('b', refused(), 'host/1'),
  );

  test.each<[when: string, state: State, due: number, now?: number]>([
    ['at two thirds of the life', state, NOON + (LIFE * 1000 * 2) / 3],
    ['at once after an import', imported(), 0],
    ['at the expiry where the service refuses earlier', { ...state, refusesEarly: true }, EXPIRY],
    ['5 minutes before the expiry while it is uncertain', uncertain, EXPIRY - 5 * MINUTE],
    [
      'once a claim of another process is over',
      claimed,
      Math.max(NOON + CLAIM_MS, EXPIRY - 5 * MINUTE),
    ],
    ['5 s after the expiry once it was refused', refusedOnce, EXPIRY + 5_000],
    ['a minute after the second refusal', refusedAgain, EXPIRY + 5_000 + MINUTE, EXPIRY + 5_000],
    ['not before the service wants it', { ...state, notBefore: EXPIRY }, EXPIRY, EXPIRY - MINUTE],
    [
      'at its time, whatever pause was asked for before the clock was set back',
      { ...state, notBefore: NOON + 3 * DAY },
      NOON + (LIFE * 1000 * 2) / 3,
    ],
    ['at once where the clock was set back by a day', { ...state, savedAt: NOON + 25 * HOUR }, 0],
    [
      '5 s after a refusal where the clock was set back by a day before it',
      { ...refusedOnce, savedAt: NOON + 25 * HOUR, expiresAt: EXPIRY + DAY },
      NOON + HOUR + 5_000,
    ],
  ])('%s', (_when, given, due, now = NOON + HOUR) => {
    expect(dueAt(given, now, 0)).toBe(due);
  });

  test('replicas do not all wake up at once: the jitter is 5 % at most', () => {
    const [latest, earliest] = [dueAt(state, NOON, 0), dueAt(state, NOON, 1)];
    expect(latest - earliest).toBeCloseTo(((LIFE * 1000 * 2) / 3) * 0.05);
  });

  test('a refresh token that expires before its access token counts its own life', () => {
    const short = exchanged();
    const pair = { ...short.pair, refreshTokenExpiresIn: 3_600 };
    expect(dueAt({ ...short, pair }, NOON, 0)).toBe(NOON + (HOUR * 2) / 3);
  });
});

test('an answer that was not understood is kept until its pair has a successor, whatever later tries give', () => {
  const kept: Ending = { kind: 'unclear', why: 'status 500', answer: 'perhaps a pair' };
  const state = after(exchanged(), NOON, claimOf('a', 2), endAttempt('a', kept, 'host/1'));
  for (const ending of [refused(), unclear, { kind: 'lost', isExpired: true } as const]) {
    const later = after(state, NOON, claimOf('b', 2, 'a'), endAttempt('b', ending, 'host/1'));
    expect(later.answer).toBe('perhaps a pair');
    expect(after(later, NOON, saveOf(later, '3')).answer).toBeNull();
  }
});

describe('a claim', () => {
  const state = exchanged();
  const claimed = after(state, NOON, claimOf('a', 2));
  const uncertain = after(claimed, NOON, endAttempt('a', unclear, 'host/1'));

  test.each<[string, State, number, ReturnType<typeof claimOf>, boolean]>([
    ['is granted', state, NOON, claimOf('a', 2), true],
    ['is refused for an older generation', state, NOON, claimOf('a', 1), false],
    [
      'is refused while another is live, whoever made it',
      claimed,
      NOON + CLAIM_MS - 1,
      claimOf('b', 2, 'a'),
      false,
    ],
    [
      'is granted after a dead one to who knows of it',
      claimed,
      NOON + CLAIM_MS,
      claimOf('b', 2, 'a'),
      true,
    ],
    [
      'is refused after a dead one to who does not',
      claimed,
      NOON + CLAIM_MS,
      claimOf('b', 2),
      false,
    ],
    ['is granted after one without an answer', uncertain, NOON, claimOf('b', 2, 'a'), true],
    ['is granted where another is dated ahead', claimed, NOON - HOUR, claimOf('b', 2, 'a'), true],
    ['is granted again to its own attempt', claimed, NOON, claimOf('a', 2), true],
    [
      'is refused for a set that was moved',
      { ...state, movedTo: 'elsewhere' },
      NOON,
      claimOf('a', 2),
      false,
    ],
    ['is refused for a set that is lost', { ...state, lost: true }, NOON, claimOf('a', 2), false],
    [
      'is refused after the end of the refresh token',
      state,
      NOON + 121 * DAY,
      claimOf('a', 2),
      false,
    ],
    [
      'is refused in a pause that the service asked for',
      { ...state, notBefore: NOON + MINUTE },
      NOON,
      claimOf('a', 2),
      false,
    ],
  ])('%s', (_what, before, now, rule, isGranted) => {
    expect(rule(before, now).result).toBe(isGranted);
  });

  test('is granted for a lost set to `tokens recover`, which has nothing to lose', () => {
    const request = { attempt: 'a', generation: 2, over: null, by: 'office/1', evenIfLost: true };
    expect(takeClaim(request)({ ...state, lost: true }, NOON).result).toBe(true);
  });

  test('after which a refresh token must not be sent again is a loss once it is over, until its pair is saved', () => {
    const request = { attempt: 'a', generation: 2, over: null, by: 'host/1', isFinal: true };
    const only = after(state, NOON, takeClaim(request));
    expect(isLost(only, NOON)).toBe(false);
    expect(isLost(only, NOON + CLAIM_MS)).toBe(true);
    expect(claimOf('b', 2, 'a')(only, NOON + CLAIM_MS).result).toBe(false);
    const unsent = after(only, NOON, endAttempt('a', { kind: 'not exchanged' }, 'host/1'));
    const saved = after(only, NOON + CLAIM_MS, saveOf(state, '3'));
    for (const next of [unsent, saved]) expect(isLost(next, NOON + CLAIM_MS)).toBe(false);
  });

  test('that is over makes the refresh token uncertain, and one with an answer does not', () => {
    expect(isUncertain(claimed, NOON)).toBe(false);
    expect(isUncertain(claimed, NOON + CLAIM_MS)).toBe(true);
    expect(isUncertain(uncertain, NOON)).toBe(true);
    expect(isLive(uncertain.claim, NOON)).toBe(false);
    const unsent = after(claimed, NOON, endAttempt('a', { kind: 'not exchanged' }, 'host/1'));
    expect(unsent.claim).toBeNull();
  });

  test('after which nothing was sent leaves a refresh token uncertain that was so before', () => {
    const again = after(uncertain, NOON + CLAIM_MS, claimOf('b', 2, 'a'));
    expect(again.claim?.attempt).toBe('b');
    const unsent = after(
      again,
      NOON + CLAIM_MS,
      endAttempt('b', { kind: 'not exchanged' }, 'host/1'),
    );
    expect(unsent.claim).toEqual(uncertain.claim);
  });
});

describe('saving a pair', () => {
  const state = exchanged();

  test('never depends on the claim, and keeps the access token before it until that expires', () => {
    const others = after(state, NOON, claimOf('other', 2));
    const next = saveOf(state, '3')(others, NOON).result;
    expect(next).toMatchObject({
      generation: 3,
      pair: pairOf('3'),
      claim: null,
      previous: { accessToken: 'access-2', generation: 2, expiresAt: EXPIRY },
    });
  });

  test('is the same when it is repeated, and an older pair replaces nothing', () => {
    const next = saveOf(state, '3')(state, NOON).result;
    expect(saveOf(state, '3')(next, NOON)).toEqual({ result: next });
    const first = { ...imported(), id: state.id };
    expect(save(successor(first, pairOf('old')), 0, 'host/1')(next, NOON)).toEqual({
      result: next,
    });
  });

  test('ends a loss', () => {
    const lost = { ...state, lost: true, refusals: 4 };
    const next = saveOf(state, '3')(lost, NOON).result;
    expect(next).toMatchObject({ generation: 3, lost: false, refusals: 0 });
  });

  test('counts its life from the exchange, not from the save', () => {
    const next = save(successor(state, pairOf('3')), MINUTE, 'host/1')(state, NOON).result;
    expect(next).toMatchObject({ savedAt: NOON - MINUTE, expiresAt: EXPIRY - MINUTE });
  });

  test('after a refusal teaches that the service refuses early', () => {
    const refusedOnce = after(state, NOON, claimOf('a', 2), endAttempt('a', refused(), 'host/1'));
    expect(saveOf(refusedOnce, '3')(refusedOnce, EXPIRY).result).toMatchObject({
      refusesEarly: true,
      refusals: 0,
    });
  });

  test('during an import replaces what the import would be withdrawn to', () => {
    const replaced = importOf('new', true)(state, NOON).next!;
    const next = after(replaced, NOON, saveOf(state, '3'));
    expect(next.pair).toEqual(pairOf('new'));
    const withdrawn = after(
      next,
      NOON,
      claimOf('a', next.generation),
      endAttempt('a', { kind: 'lost', isExpired: true }, 'host/1'),
    );
    expect(withdrawn).toMatchObject({ pair: pairOf('3'), lost: false, set: state.set });
  });
});

describe('putting a pair back', () => {
  const state = exchanged();

  test.each<[string, State | null, boolean]>([
    ['into an emptied store', null, true],
    ['into an older copy', imported(), true],
    ['not into a store that has it', state, false],
    ['not into a store that has a newer one', saveOf(state, '3')(state, NOON).result, false],
    ['not into another store', { ...imported('9'), id: 'another' }, false],
  ])('%s', (_where, stored, isPutBack) => {
    const older =
      stored?.generation === 1 && stored.id !== 'another' ? { ...stored, id: state.id } : stored;
    const { next } = putBack(state, 'host/1')(older, NOON);
    expect(next !== undefined).toBe(isPutBack);
  });

  test('puts back the claim that is known, so that nobody sends in its time', () => {
    const claimed = after(state, NOON, claimOf('a', 2));
    const stored = putBack(claimed, 'host/1')(null, NOON).next!;
    expect(claimOf('b', 2, 'a')(stored, NOON).result).toBe(false);
  });
});

describe('a refusal', () => {
  test('is a loss only as the last of four after the expiry', () => {
    let state = exchanged();
    const seen: boolean[] = [];
    for (const attempt of ['a', 'b', 'c']) {
      seen.push(isSpentIfRefused(state));
      state = after(
        state,
        EXPIRY,
        claimOf(attempt, 2),
        endAttempt(attempt, refused(true), 'host/1'),
      );
    }
    expect([...seen, isSpentIfRefused(state)]).toEqual([false, false, false, true]);
  });

  test('of an import is a loss the second time, and what it replaced is in use again', () => {
    const before = exchanged();
    const replaced = importOf('new', true)(before, NOON).next!;
    const once = after(replaced, NOON, claimOf('a', 3), endAttempt('a', refused(true), 'host/1'));
    expect(isSpentIfRefused(once)).toBe(true);
    expect(dueAt(once, NOON, 0)).toBe(NOON + 5_000);
    const lost: Ending = { kind: 'lost', isExpired: true };
    const twice = after(once, NOON + 5_000, claimOf('b', 3), endAttempt('b', lost, 'host/1'));
    expect(twice).toMatchObject({ pair: before.pair, set: before.set, generation: 4, lost: false });
    expect(twice.events[0]!.what).toBe('withdrawn');
  });

  test('of an import that replaced an uncertain set leaves that set uncertain', () => {
    const uncertain = after(exchanged(), NOON, claimOf('a', 2), endAttempt('a', unclear, 'host/1'));
    const replaced = after(uncertain, NOON, importOf('new', true), claimOf('b', 3));
    const lost: Ending = { kind: 'lost', isExpired: true };
    const withdrawn = after(replaced, NOON, endAttempt('b', lost, 'host/1'));
    expect(withdrawn).toMatchObject({ set: uncertain.set, claim: uncertain.claim });
  });

  test('of an access token as expired moves its expiry', () => {
    expect(after(exchanged(), NOON, expired(2)).expiresAt).toBe(NOON);
    expect(expired(1)(exchanged(), NOON).next).toBeUndefined();
  });
});

describe('an import', () => {
  const state = exchanged();

  test.each<[string, State | null, ReturnType<typeof importOf>, string]>([
    ['into an empty store succeeds', null, importOf('new'), 'imported'],
    ['over a set in use is refused', state, importOf('new'), 'in use'],
    ['over a set in use with --replace succeeds', state, importOf('new', true), 'imported'],
    ['over a lost set succeeds', { ...state, lost: true }, importOf('new'), 'imported'],
    [
      'of a refresh token that this store has seen replaces nothing',
      { ...state, lost: true },
      importOf('1'),
      'known',
    ],
    [
      'into the store of another service is refused',
      { ...state, service: 'https://other' },
      importOf('new'),
      'foreign',
    ],
  ])('%s', (_what, before, rule, outcome) => {
    const { next, result } = rule(before, NOON);
    expect(result).toBe(outcome);
    expect(next !== undefined).toBe(outcome === 'imported');
  });

  test('begins another set, keeps the id of the store and its history', () => {
    const next = importOf('new', true)(state, NOON).next!;
    expect(next).toMatchObject({ id: state.id, generation: 3, imported: true });
    expect(next.set).not.toBe(state.set);
    expect(next.events.map(({ what }) => what)).toEqual(['imported', 'saved', 'imported']);
    expect(next.events[0]!.fingerprint).toBe(fingerprintOf(pairOf('new')));
  });
});

describe('a move', () => {
  const state = exchanged();

  test.each<[string, State | null, string]>([
    ['of a set in use succeeds', state, 'moved'],
    ['of an empty store is refused', null, 'empty'],
    ['of a lost set is refused', { ...state, lost: true }, 'lost'],
    ['during an exchange is refused', after(state, NOON, claimOf('a', 2)), 'under way'],
    [
      'of an uncertain set is refused',
      after(state, NOON, claimOf('a', 2), endAttempt('a', unclear, 'host/1')),
      'uncertain',
    ],
    ['to a second store is refused', { ...state, movedTo: 'first' }, 'elsewhere'],
  ])('%s', (_what, before, kind) => {
    expect(moveTo('target', 'office/1')(before, NOON).result.kind).toBe(kind);
  });

  test('can be finished after a crash, gives the set one owner, and shifts its times to the clock there', () => {
    const source = after(state, NOON, moveTo('target', 'office/1'));
    expect(moveTo('target', 'office/1')(source, NOON).result).toEqual({
      kind: 'moved',
      state: source,
    });
    const target = receiveMove(source, HOUR, 'office/1')(null, NOON - HOUR).next!;
    expect(target).toMatchObject({
      pair: state.pair,
      set: state.set,
      movedTo: null,
      savedAt: NOON - HOUR,
    });
    expect(receiveMove(source, HOUR, 'office/1')(target, NOON)).toEqual({ result: 'placed' });
    expect(claimOf('a', source.generation)(source, NOON).result).toBe(false);
    expect(claimOf('a', target.generation)(target, NOON - HOUR).result).toBe(true);
  });

  test('back to the store that it came from makes the set usable there again', () => {
    const first = exchanged();
    const gone = after(first, NOON, moveTo('sqlite:/there', 'host/1'));
    const there = receiveMove(gone, 0, 'host/1')(null, NOON).next!;
    const back = after(there, NOON, moveTo('sqlite:/here', 'host/1'));
    const here = receiveMove(back, 0, 'host/1')(gone, NOON);
    expect(here).toMatchObject({
      result: 'placed',
      next: { movedTo: null, set: first.set, pair: first.pair },
    });
    // Repeated, the first move changes nothing there any more.
    expect(receiveMove(gone, 0, 'host/1')(back, NOON)).toEqual({ result: 'placed' });
  });

  test('into a store with tokens in use is refused', () => {
    expect(receiveMove(state, 0, 'office/1')(imported('9'), NOON)).toEqual({ result: 'in use' });
  });
});

test('a set is lost after the end of its refresh token, 120 days after its exchange', () => {
  expect(isLost(exchanged(), NOON + 120 * DAY - 1)).toBe(false);
  expect(isLost(exchanged(), NOON + 120 * DAY)).toBe(true);
});

test('the audit trail keeps 200 events and no token', () => {
  let state = exchanged();
  for (let next = 3; next < 300; next += 1) state = saveOf(state, String(next))(state, NOON).result;
  expect(state.events).toHaveLength(200);
  expect(JSON.stringify(state.events)).not.toMatch(/(access|refresh)-/);
});
