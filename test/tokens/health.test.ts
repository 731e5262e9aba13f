import { expect, test } from 'vitest';
import { lineOn } from '../../src/setup/wording.ts';
import { endIsNear, healthOf, troublesOf, type Trouble } from '../../src/tokens/health.ts';
import { LONGEST_LIFE } from '../../src/tokens/pair.ts';
import { endAttempt, type State } from '../../src/tokens/state.ts';
import { claimOf, exchanged, imported, LIFE, NOON } from './values.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const END = NOON + 120 * DAY;
const EXPIRY = NOON + LIFE * 1000;

const state = exchanged();
const claimedAt = (now: number, of: State = state) => claimOf('a', 2)(of, now).next!;
const unclear = { kind: 'unclear', why: 'cut', answer: null } as const;
const uncertain = endAttempt('a', unclear, 'host/1')(claimedAt(NOON), NOON).next!;
const lost = { ...state, lost: true };
const short = {
  ...state,
  pair: { ...state.pair, expiresIn: 600 },
  expiresAt: NOON + 600_000,
};
const due = NOON + (LIFE * 1000 * 2) / 3;
/** A set whose refresh token was refused once, and whose access token ends then. */
const refused = (expiresAt: number) => ({ ...state, refusals: 1, refusedAt: NOON, expiresAt });
const known = { isUnsaved: false, isUnauthorized: false };

test.each<[what: string, state: State | null, now: number, troubles: Trouble[], facts?: object]>([
  ['a healthy set', state, NOON + HOUR, []],
  ['a set whose refresh was due a moment ago', state, due + 9 * MINUTE, []],
  ['a set whose refresh was due 11 minutes ago', state, due + 11 * MINUTE, ['late']],
  ['an exchange', claimedAt(NOON), NOON + MINUTE, []],
  ['an exchange without an answer for a minute', claimedAt(NOON), NOON + 61_000, ['uncertain']],
  ['an exchange without a clear answer', uncertain, NOON, ['uncertain']],
  ['a store without tokens', null, NOON, ['missing']],
  ['a store that was never read', null, NOON, ['late'], { isUnread: true }],
  ['a set that was moved', { ...state, movedTo: 'there' }, NOON, ['missing']],
  ['a set that is lost', lost, NOON, ['lost']],
  ['a set that is lost after a lost answer', { ...uncertain, lost: true }, NOON, ['lost']],
  ['a set after its end', state, END, ['lost']],
  ['a set a day before its end', state, END - DAY, ['late', 'ending']],
  ['an import that is not exchanged', imported(), NOON + 11 * MINUTE, ['late']],
  [
    'a claim that leaves callers without an access token',
    claimedAt(EXPIRY - MINUTE),
    EXPIRY + MINUTE,
    ['uncertain', 'late'],
  ],
  [
    'an exchange right after the expiry',
    claimedAt(EXPIRY, { ...state, refusesEarly: true }),
    EXPIRY + 20_000,
    [],
  ],
  ['a set of which both tokens are refused', refused(NOON + HOUR), NOON + HOUR, ['late']],
  ['an early refusal', refused(NOON + 2 * HOUR), NOON + HOUR, []],
  ['an unsaved pair', state, NOON, ['unsaved'], { isUnsaved: true }],
  ['a refused access token', state, NOON, ['unauthorized'], { isUnauthorized: true }],
  ['a lost set, and a refused token', lost, NOON, ['lost'], { isUnauthorized: true }],
  ['a set that lives for ten minutes, a minute after it was due', short, NOON + 461_000, ['late']],
])('the troubles of %s', (_what, given, now, troubles, facts = {}) => {
  expect(troublesOf(given, { now, ...known, ...facts })).toEqual(troubles);
});

test('a store that was never read is not called empty', () => {
  expect(lineOn('late', null, NOON)).toMatch(/could not read.*INTERNAL_SERVER_ERROR/);
});

test('no end is near right after a refresh, however short the life is', () => {
  for (const days of [0.5, 2, 4, 10, 30, 60]) {
    const pair = { ...state.pair, refreshTokenExpiresIn: days * 86_400 };
    expect(endIsNear({ ...state, pair }, NOON)).toBeUndefined();
  }
});

test('a lost refresh token has no time left, and one whose end is not known has no number', () => {
  const facts = { now: NOON, ...known };
  expect(healthOf(state, facts).refreshSecondsLeft).toBe(120 * 86_400);
  const endless = { ...state, pair: { ...state.pair, refreshTokenExpiresIn: LONGEST_LIFE } };
  expect(healthOf(endless, facts)).not.toHaveProperty('refreshSecondsLeft');
  for (const each of [state, endless]) {
    expect(healthOf({ ...each, lost: true }, facts).refreshSecondsLeft).toBe(0);
  }
});
