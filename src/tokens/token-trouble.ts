import { thresholdOf } from './end-warnings.ts';

/** What can be wrong with the tokens: the same words in logs (`trouble`), metrics and `tokens status`. */
export const TROUBLES = [
  'missing',
  'moved',
  'lost',
  'uncertain',
  'unsaved',
  'ending',
  'not-renewed',
  'second-pair',
  'not-rotated',
] as const;

export type Trouble = (typeof TROUBLES)[number];

/** After these nothing can be rotated any more, until a human acts. */
export const FATAL: ReadonlySet<Trouble> = new Set(['missing', 'moved', 'lost']);

export interface TokenFacts {
  readonly lost: boolean;
  readonly moved: boolean;
  readonly doubtful: boolean;
  /** A pair that was received is not in the store. */
  readonly unsaved: boolean;
  /** All of these in ms. */
  readonly accessLeft: number;
  readonly refreshLeft: number;
  readonly refreshLife: number;
  /** The last answer held no new refresh token, or no access token. */
  readonly notRenewed?: boolean;
  readonly surplus?: boolean;
}

export function troublesOf(facts: TokenFacts): Trouble[] {
  const isLost = facts.lost || facts.refreshLeft <= 0;
  if (facts.moved) return ['moved'];
  const found: Partial<Record<Trouble, boolean | undefined>> = {
    lost: isLost,
    uncertain: facts.doubtful && !isLost,
    unsaved: facts.unsaved,
    ending: !isLost && thresholdOf(facts.refreshLeft, facts.refreshLife) !== undefined,
    'not-renewed': facts.notRenewed,
    'second-pair': facts.surplus,
    'not-rotated': !isLost && facts.accessLeft <= 0,
  };
  return TROUBLES.filter((trouble) => found[trouble] === true);
}

/** What to do about each, for people. */
export const ADVICE: Record<Trouble, string> = {
  missing:
    'No token set was imported. Have an administrator make a token in the personal account, and run `tokens import <link>`.',
  moved:
    'The set was moved to another store. Set TOKEN_STORE to that one wherever a gateway still uses this one.',
  lost:
    'The set is lost: nothing but a new one helps. Have an administrator make a new token in the personal account, ' +
    'and run `tokens import <link>`; a running gateway goes on by itself. A backup of the store does not help: ' +
    'its refresh token was spent by the next rotation.',
  uncertain:
    'An exchange never got a clear answer, so the refresh token may be spent. The access token serves while it works; ' +
    'shortly before its end the refresh token is sent once more. Run `tokens recover` to know at once.',
  unsaved:
    'A new pair is not in the store yet. Free the disk or give the rights back before you stop the gateway that holds it; ' +
    'from a rescue file it is saved by `tokens recover`, or by the next start.',
  ending:
    'The refresh token was not renewed for long. Start a gateway, or run `tokens refresh`, before it ends.',
  'not-renewed':
    'The last answer of the service held no new refresh token, or no access token; what came is kept and used. ' +
    'Ask the service if it happens again.',
  'second-pair':
    'The service gave two pairs for one refresh token. Both are kept; the first one is in use.',
  'not-rotated':
    'The access token has expired and was not rotated. Start a gateway, or run `tokens refresh` and read what it says.',
};
