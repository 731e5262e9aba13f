import type { Clock } from '../clock.ts';
import type { LossCause } from './token-errors.ts';
import type { TokenPair } from './token-set.ts';
import type { NewPair, StoredTokens } from './store/token-store.ts';

/** The newest pair that this process knows, and its times. All times are `clock.elapsed()`, ms. */
export interface Head {
  readonly set: string;
  readonly generation: number;
  readonly pair: TokenPair;
  /** As it was saved: to be saved again, should the store lose it. */
  readonly saved: NewPair;
  /** When it was refreshed. */
  readonly bornAt: number;
  /** When it is to be rotated ahead of its expiry. */
  readonly rotateAt: number;
  readonly lost: boolean;
  readonly movedTo: string | null;
  /** Another process is exchanging it right now. */
  readonly busy: boolean;
  /**
   * An exchange of it ended without a clear answer: its refresh token may be spent. A later one that was
   * turned away takes no doubt from it.
   */
  readonly doubtful: boolean;
  /** The attempt of the mark that says so, if there is one. */
  readonly doubt: string | null;
  /** How many such exchanges there were. */
  readonly unanswered: number;
  /** Straight from an import. */
  readonly imported: boolean;
  /** There are further pairs of this generation. */
  readonly surplus: boolean;
  /** The service has taken this access token at least once, or may have before we knew it. */
  readonly accepted: boolean;
}

export type HeadSource = { readonly saved: NewPair } & Pick<
  StoredTokens,
  | 'set'
  | 'generation'
  | 'pair'
  | 'lost'
  | 'movedTo'
  | 'imported'
  | 'mark'
  | 'unanswered'
  | 'surplus'
>;

/** @param bornAt when the pair was refreshed, by `clock.elapsed()` */
export function headOf(source: HeadSource, bornAt: number, first: boolean, random: number): Head {
  const { set, generation, pair, saved, imported } = source;
  const life = Math.min(pair.expiresIn, pair.refreshTokenExpiresIn) * 1000;
  const early = (2 / 3) * (1 - random / 20);
  return {
    set,
    generation,
    pair,
    saved,
    bornAt,
    // At once after an import: that kills the link, which is a secret, and starts both lifetimes now.
    rotateAt: imported ? bornAt : bornAt + life * early,
    // A set that an earlier process used, or that lay behind its link: its expiry is believed at once.
    accepted: imported || first,
    imported,
    ...standing(source),
  };
}

/** What is stored, as it was saved once. How long its exchange took, it does not say. */
export function savedAs(stored: StoredTokens, store: string): NewPair {
  const { storeId, set, baseUrl, generation, attempt, pair, savedAt: at } = stored;
  const exchange = {
    generation: generation - 1,
    attempt,
    outcome: 'rotated',
    latencyMs: 0,
  } as const;
  return { set, ...exchange, pair, at, home: { store, storeId, baseUrl } };
}

/**
 * The same pair, with what the store says of it now.
 *
 * @param forgotten unanswered exchanges of it that the store does not know of any more
 */
export function toldOf(head: Head, source: Omit<HeadSource, 'saved'>, forgotten: number): Head {
  const told = standing(source);
  const unanswered = Math.max(told.unanswered, forgotten);
  const stillOpen = forgotten > 0 && { unanswered, doubtful: !told.busy };
  // Refused for good, and the store could not be told: it goes on saying that there is hope.
  const refused = head.lost && { lost: true, doubtful: false, doubt: null };
  return { ...head, ...told, ...stillOpen, ...refused };
}

function standing(source: Omit<HeadSource, 'saved'>) {
  const { lost, movedTo, mark, unanswered, surplus } = source;
  const busy = mark?.live === true;
  const doubtful = !busy && (mark !== null || unanswered > 0);
  const doubt = busy ? null : (mark?.attempt ?? null);
  return { lost, movedTo, busy, doubtful, doubt, unanswered, surplus: surplus > 0 };
}

export function isSamePair(
  one: { set: string; generation: number },
  other: { set: string; generation: number },
): boolean {
  return one.set === other.set && one.generation === other.generation;
}

/** Milliseconds until the access token expires. */
export function accessLeft({ pair, bornAt }: Head, clock: Clock): number {
  return bornAt + pair.expiresIn * 1000 - clock.elapsed();
}

/** Milliseconds until the refresh token ends. */
export function refreshLeft({ pair, bornAt }: Head, clock: Clock): number {
  return bornAt + pair.refreshTokenExpiresIn * 1000 - clock.elapsed();
}

/**
 * When a refresh token in doubt is sent once more, while its access token still works: late, since some
 * services revoke everything when a refresh token comes twice.
 */
export function replayAt({ pair, bornAt }: Head): number {
  const life = Math.min(pair.expiresIn, pair.refreshTokenExpiresIn) * 1000;
  return bornAt + life - Math.min(LAST_MINUTES_MS, life / 10);
}

const LAST_MINUTES_MS = 5 * 60_000;

/** Why nothing is sent for this head any more; undefined when it can be exchanged. */
export function lossOf(head: Head, clock: Clock): LossCause | undefined {
  if (head.lost) return head.unanswered > 0 ? 'unanswered' : 'refused';
  return refreshLeft(head, clock) <= 0 ? 'ended' : undefined;
}
