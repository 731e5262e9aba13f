import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import type { Failure, Outcome, Wrapper } from './request.ts';
import type { UpstreamTelemetry } from './telemetry.ts';

/** Failures in a row, each after all its attempts, over at least this time: a short overload passes by itself. */
const FAILURES_TO_OPEN = 5;
const FAILING_MS = 2_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Makes a circuit breaker: while the service is down, requests fail at once instead of waiting in vain. It opens when
 * several requests in a row got no answer. After a pause it lets one request through, the probe. Each probe doubles the
 * pause behind it, since it may hang where another one would not, and any answer closes the breaker.
 */
export function breaker(
  clock: Clock,
  telemetry: Pick<UpstreamTelemetry, 'breakerOpened' | 'breakerClosed'>,
): Wrapper {
  let failures = 0;
  let failingSince = 0;
  let openedAt: number | undefined;
  let pauseMs = 0;
  /** When the next request is let through. */
  let pausedUntil = 0;

  return (next) => async (request, sender) => {
    if (openedAt !== undefined) {
      const waitMs = pausedUntil - clock.elapsed();
      if (waitMs > 0) return refused(waitMs);
      pause(2 * pauseMs);
    }
    // It rejects if all callers have left, or there is no token: that, and no turn, say nothing about the service.
    const outcome = await next(request, sender);
    if (outcome.kind === 'failure' && outcome.isUnsent) return outcome;
    if (!isOutage(outcome)) answered();
    else if (openedAt === undefined) failed(outcome);
    return outcome;
  };

  function answered(): void {
    failures = 0;
    if (openedAt === undefined) return;
    telemetry.breakerClosed(clock.elapsed() - openedAt);
    openedAt = undefined;
  }

  function failed({ error }: Failure): void {
    const now = clock.elapsed();
    if (failures === 0) failingSince = now;
    failures += 1;
    if (failures < FAILURES_TO_OPEN || now - failingSince < FAILING_MS) return;
    openedAt = now;
    pause(FIRST_PAUSE_MS);
    telemetry.breakerOpened(error);
  }

  function pause(ms: number): void {
    pauseMs = Math.min(ms, LONGEST_PAUSE_MS);
    pausedUntil = clock.elapsed() + pauseMs;
  }
}

/**
 * Whether there was no answer, or only that of a proxy whose service is down. A service that answers with GraphQL or
 * limits the rate is not down.
 */
function isOutage(outcome: Outcome): outcome is Failure {
  if (outcome.kind === 'answer' || outcome.answer) return false;
  const code = outcome.error.extensions['code'];
  return code === 'UPSTREAM_TIMEOUT' || (!!outcome.isTemporary && code !== 'UPSTREAM_RATE_LIMITED');
}

function refused(waitMs: number): Failure {
  const retryAfter = Math.ceil(waitMs / 1000);
  return {
    kind: 'failure',
    error: codedError(
      'UPSTREAM_UNREACHABLE',
      `Nothing was sent: the recruiting service is temporarily unavailable. Try again in ${retryAfter} s.`,
      { extensions: { retryAfter } },
    ),
  };
}
