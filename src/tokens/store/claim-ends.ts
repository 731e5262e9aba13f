import type { HeldClaim } from './token-document.ts';

/** How long an exchange may take from its claim on, ms: until then its pair may still be saved. */
export const CLAIM_LIFE_MS = 150_000;

/**
 * Whether claims have reached their end. The store's clock alone does not show that: if it was ahead at the claim, or is
 * set back after it, the end lies so far in the future that no process could ever exchange the refresh token again. So a
 * claim also ends when its own length has passed since this process first saw it, by the clock of this process, which
 * never jumps. Its holder measures from an earlier moment, before the claim, and by such a clock too, so it sends nothing
 * after that.
 */
interface ClaimEnds {
  /** @param now the store's clock, ms */
  isOver(claim: HeldClaim, now: number): boolean;
}

/** More claims than the sets of a store have at a time. */
const REMEMBERED = 16;

/** @param elapsed time that never jumps, ms */
export function createClaimEnds(elapsed: () => number): ClaimEnds {
  const seenAt = new Map<string, number>();

  return {
    isOver: (claim, now) => now >= claim.until || elapsed() - firstSeen(claim) >= lengthOf(claim),
  };

  function firstSeen({ attempt }: HeldClaim): number {
    const known = seenAt.get(attempt);
    if (known !== undefined) return known;
    if (seenAt.size >= REMEMBERED) seenAt.delete(seenAt.keys().next().value!);
    const at = elapsed();
    seenAt.set(attempt, at);
    return at;
  }
}

function lengthOf({ at, until }: HeldClaim): number {
  return Math.min(until - at, CLAIM_LIFE_MS);
}

const TOLERANCE_MS = 60_000;

/** Whether the end of a claim lies further ahead than that of any claim: the store's clock was set back since. */
export function isDatedAhead({ ended, until }: HeldClaim, now: number): boolean {
  return !ended && until - now > CLAIM_LIFE_MS + TOLERANCE_MS;
}
