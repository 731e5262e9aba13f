import type { Clock } from '../clock.ts';
import { accessLeft, refreshLeft, type Head } from './head.ts';
import { troublesOf, type Trouble } from './token-trouble.ts';

/** How the tokens of a running gateway stand. */
export interface TokenStanding {
  readonly generation: number;
  /** Seconds, 0 when past. */
  readonly accessSecondsLeft: number;
  /** Seconds, 0 when past. */
  readonly refreshSecondsLeft: number;
  /** Seconds since the pair was refreshed. */
  readonly age: number;
  readonly troubles: readonly Trouble[];
  /** How often the store was found to have been replaced or taken away. */
  readonly storeLosses: number;
}

interface RotationFacts {
  readonly unsaved: boolean;
  readonly notRenewed: boolean;
  readonly blocked: boolean;
  readonly storeLosses: number;
}

export function standingOf(
  head: Head,
  { unsaved, notRenewed, blocked, storeLosses }: RotationFacts,
  clock: Clock,
): TokenStanding {
  const left = { access: accessLeft(head, clock), refresh: refreshLeft(head, clock) };
  const age = clock.elapsed() - head.bornAt;
  return {
    generation: head.generation,
    accessSecondsLeft: Math.max(0, left.access / 1000),
    // That it would live for months says nothing of a token that the service refuses.
    refreshSecondsLeft: head.lost ? 0 : Math.max(0, left.refresh / 1000),
    age: age / 1000,
    storeLosses,
    troubles: troublesOf({
      lost: head.lost,
      moved: head.movedTo !== null,
      doubtful: head.doubtful,
      unsaved,
      notRenewed,
      blocked,
      age,
      neverRotated: head.imported && !head.busy,
      surplus: head.surplus,
      accessLeft: left.access,
      refreshLeft: left.refresh,
      refreshLife: head.pair.refreshTokenExpiresIn * 1000,
    }),
  };
}
