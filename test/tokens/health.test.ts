import { describe, expect, test } from 'vitest';
import { adviceOn, lineOn } from '../../src/setup/wording.ts';
import {
  endIsNear,
  healthOf,
  TROUBLES,
  troublesOf,
  type Trouble,
} from '../../src/tokens/health.ts';
import { LONGEST_LIFE } from '../../src/tokens/pair.ts';
import { endAttempt, type State } from '../../src/tokens/state.ts';
import { claimOf, exchanged, imported, LIFE, NOON } from './values.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const END = NOON + 120 * DAY;

describe('the end of a refresh token', () => {
  test.each([
    [30.5, undefined],
    [30, 30],
    [29, 30],
    [14, 14],
    [13, 14],
    [7, 7],
    [3, 3],
    [1, 1],
    [0, 1],
  ])('is near with %d days left: the warning for %s days', (left, warning) => {
    expect(endIsNear(exchanged(), END - left * DAY)).toBe(warning);
  });

  test('is never near right after a refresh, however short the life is', () => {
    const { pair, ...state } = exchanged();
    for (const days of [0.5, 2, 4, 10, 30, 60]) {
      const short = { ...state, pair: { ...pair, refreshTokenExpiresIn: days * 86_400 } };
      expect(endIsNear(short, NOON)).toBeUndefined();
    }
  });
});

describe('a trouble', () => {
  const state = exchanged();
  const claimed = claimOf('a', 2)(state, NOON).next!;
  const unclear = { kind: 'unclear', why: 'cut', answer: null } as const;
  const uncertain = endAttempt('a', unclear, 'host/1')(claimed, NOON).next!;
  const due = NOON + (LIFE * 1000 * 2) / 3;

  test.each<[what: string, state: State | null, now: number, troubles: Trouble[]]>([
    ['is not reported of a healthy set', state, NOON + HOUR, []],
    ['is not reported right after the refresh was due', state, due + 9 * MINUTE, []],
    ['is reported 10 minutes after it was due', state, due + 11 * MINUTE, ['late']],
    ['is not reported during an exchange', claimed, NOON + MINUTE, []],
    [
      'is reported of an exchange without an answer for long',
      claimed,
      NOON + 61_000,
      ['uncertain'],
    ],
    ['is reported after an exchange without a clear answer', uncertain, NOON, ['uncertain']],
    ['is reported of a store without tokens', null, NOON, ['missing']],
    ['is reported of a set that was moved', { ...state, movedTo: 'there' }, NOON, ['missing']],
    ['is reported of a set that is lost', { ...state, lost: true }, NOON, ['lost']],
    ['is only the loss after the end', state, END, ['lost']],
    ['is reported of an import that is not exchanged', imported(), NOON + 11 * MINUTE, ['late']],
    [
      'is reported of a claim that leaves callers without an access token',
      claimOf('a', 2)(state, NOON + LIFE * 1000 - MINUTE).next!,
      NOON + LIFE * 1000 + MINUTE,
      ['uncertain', 'late'],
    ],
    [
      'is not reported of an exchange right after the expiry',
      claimOf('a', 2)({ ...state, refusesEarly: true }, NOON + LIFE * 1000).next!,
      NOON + LIFE * 1000 + 20_000,
      [],
    ],
    ['is reported once both tokens are refused', refused(NOON + HOUR), NOON + HOUR, ['late']],
    ['is not reported of an early refusal', refused(NOON + 2 * HOUR), NOON + HOUR, []],
    ['is reported before the end', state, END - DAY, ['late', 'ending']],
  ])('%s', (_what, given, now, troubles) => {
    const facts = { now, isUnsaved: false, isUnauthorized: false };
    expect(troublesOf(given, facts)).toEqual(troubles);
  });

  test('of a store that was never read is not that it has no tokens', () => {
    const facts = { now: NOON, isUnsaved: false, isUnauthorized: false, isUnread: true };
    expect(troublesOf(null, facts)).toEqual(['late']);
    expect(lineOn('late', null, NOON)).toMatch(/could not read.*INTERNAL_SERVER_ERROR/);
  });

  test.each(TROUBLES)(
    'tells the case, what callers get now, and the step that helps: %s',
    (trouble) => {
      const served = adviceOn(trouble, state, NOON);
      const refusedNow = adviceOn(trouble, state, NOON + LIFE * 1000);
      for (const part of [served.what, served.callers, served.step]) expect(part).toMatch(/\.$/);
      expect(refusedNow.callers).toMatch(/^Callers get [A-Z_]+( or [A-Z_]+)?\.$/);
      expect(served.callers).toMatch(trouble === 'unauthorized' ? /^Callers get/ : /^Callers are/);
    },
  );

  test('of this process alone is reported as well: an unsaved pair, a refused access token', () => {
    const facts = { now: NOON, isUnsaved: true, isUnauthorized: true };
    expect(troublesOf(state, facts)).toEqual(['unsaved', 'unauthorized']);
  });
});

test('a lost refresh token has no time left, however long it would have lived', () => {
  const facts = { now: NOON, isUnsaved: false, isUnauthorized: false };
  expect(healthOf(exchanged(), facts).refreshSecondsLeft).toBe(120 * 86_400);
  expect(healthOf({ ...exchanged(), lost: true }, facts).refreshSecondsLeft).toBe(0);
});

test('the time left of a refresh token whose end is not known is not reported', () => {
  const facts = { now: NOON, isUnsaved: false, isUnauthorized: false };
  const state = exchanged();
  const endless = { ...state, pair: { ...state.pair, refreshTokenExpiresIn: LONGEST_LIFE } };
  expect(healthOf(endless, facts)).not.toHaveProperty('refreshSecondsLeft');
});

/** A set whose refresh token was refused once, and whose access token ends then. */
function refused(expiresAt: number): State {
  return { ...exchanged(), refusals: 1, refusedAt: NOON, expiresAt };
}
