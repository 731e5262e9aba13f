import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { refreshLeft, type Head } from './head.ts';

export const DAY_MS = 86_400_000;
const THRESHOLDS_DAYS = [30, 14, 7, 3, 1];

/** Logs once each time that the end of the refresh token has come nearer than a threshold. */
export function createEndWarnings(clock: Clock, log: Logger): (head: Head) => void {
  let warned: { end: number; threshold: number } | undefined;
  return (head) => {
    const left = refreshLeft(head, clock);
    const end = head.bornAt + head.pair.refreshTokenExpiresIn * 1000;
    const threshold = thresholdOf(left, head.pair.refreshTokenExpiresIn * 1000);
    if (threshold === undefined || left <= 0) return;
    if (warned?.end === end && warned.threshold <= threshold) return;
    warned = { end, threshold };
    log.warn(
      { trouble: 'ending', daysLeft: Math.floor(left / DAY_MS) },
      'The refresh token was not renewed for long, and ends soon. Find out why the access token is not rotated: ' +
        'see the errors before this line, or run `tokens status`.',
    );
  };
}

/**
 * The threshold that has been passed, in days. Of a refresh token with a shorter life than usual those
 * count that leave it two thirds of it.
 *
 * @param left ms until its end
 * @param life its whole life, ms
 */
export function thresholdOf(left: number, life: number): number | undefined {
  return THRESHOLDS_DAYS.filter((days) => days * DAY_MS <= life / 3).findLast(
    (days) => left <= days * DAY_MS,
  );
}
