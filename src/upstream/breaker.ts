import type { GraphQLError } from 'graphql';
import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import type { Failure, OutgoingRequest, Outcome, Wrapper } from './request.ts';
import type { UpstreamTelemetry } from './telemetry.ts';

/** Failures in a row, each after all its attempts, over at least this time: a short overload passes by itself. */
const FAILURES_TO_OPEN = 5;
const FAILING_MS = 2_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** After this time the next probe is sent, since this one may hang where others would not. */
const PROBE_MS = 5_000;

/**
 * A circuit breaker: while the service is down, requests fail at once instead of waiting in vain. It opens when several
 * requests in a row got no answer. After a pause it lets one request through, the probe; each failed probe doubles the
 * pause, and any answer closes the breaker. While it is open, queries and mutations are refused alike; the probe is a
 * query unless there are only mutations. A trial may be sent at any time, and only its answer counts.
 */
export function createBreaker(
  clock: Clock,
  telemetry: Pick<UpstreamTelemetry, 'breakerOpened' | 'breakerClosed'>,
) {
  let isOpen = false;
  let answers = 0;
  let failures = 0;
  let failingSince = Infinity;
  let openedAt = 0;
  let pauseMs = FIRST_PAUSE_MS;
  /** When the next query is let through. */
  let pausedUntil = 0;
  /** The attempt in flight that shows whether the service answers again. */
  let probe: object | undefined;
  /** When the attempt that a failure ended began, and the number of answers then. */
  const begun = new WeakMap<Failure, { readonly at: number; readonly answers: number }>();

  /** Around all attempts of a request: refuses it before it waits for its turn, and counts its failure once. */
  const requests: Wrapper = (next) => async (request, sender) => {
    const refusal = refusalOf(request);
    if (refusal) return refusal;
    const outcome = await next(request, sender);
    if (outcome.kind === 'failure' && request.trialMs === undefined) failed(outcome);
    return outcome;
  };

  /** Around each attempt: the breaker may have opened while the request waited for its turn. */
  const attempts: Wrapper = (next) => async (request, sender) => {
    const refusal = refusalOf(request);
    if (refusal) return refusal;
    const begin = { at: clock.elapsed(), answers };
    const isProbe = isOpen && request.trialMs === undefined;
    const own = isProbe ? beginProbe() : undefined;
    let outcome: Outcome | undefined;
    try {
      outcome = await next(request, sender);
      if (outcome.kind === 'failure') begun.set(outcome, begin);
      return outcome;
    } finally {
      ended(outcome, own);
    }
  };

  return { requests, attempts };

  function refusalOf({ kind, trialMs }: OutgoingRequest): Failure | undefined {
    if (!isOpen || trialMs !== undefined) return undefined;
    const waitMs = pausedUntil + (kind === 'query' ? 0 : pauseMs) - clock.elapsed();
    return waitMs > 0 ? refused(waitMs) : undefined;
  }

  function beginProbe(): object {
    pausedUntil = clock.elapsed() + Math.max(pauseMs, PROBE_MS);
    return (probe = {});
  }

  /** @param outcome undefined if all callers have left, or there is no token, which says nothing about the service */
  function ended(outcome: Outcome | undefined, own: object | undefined): void {
    if (outcome && !isOutage(outcome)) answered();
    else if (!own || own !== probe) return;
    else if (outcome) pause(pauseMs * 2);
    else {
      pausedUntil = clock.elapsed();
      probe = undefined;
    }
  }

  function answered(): void {
    answers += 1;
    failures = 0;
    failingSince = Infinity;
    if (!isOpen) return;
    isOpen = false;
    probe = undefined;
    telemetry.breakerClosed(clock.elapsed() - openedAt);
  }

  function failed(failure: Failure): void {
    const last = begun.get(failure);
    // Without an attempt it says nothing; with answers during it, another request showed that the service works.
    if (isOpen || !last || last.answers !== answers || !isOutage(failure)) return;
    failures += 1;
    failingSince = Math.min(failingSince, last.at);
    const hasLasted = clock.elapsed() - failingSince >= FAILING_MS;
    if (failures >= FAILURES_TO_OPEN && hasLasted) open(failure.error);
  }

  function open(error: GraphQLError): void {
    isOpen = true;
    openedAt = clock.elapsed();
    pause(FIRST_PAUSE_MS);
    telemetry.breakerOpened(error);
  }

  function pause(ms: number): void {
    pauseMs = Math.min(ms, LONGEST_PAUSE_MS);
    pausedUntil = clock.elapsed() + pauseMs;
    probe = undefined;
  }
}

/**
 * Whether there was no answer, or only that of a proxy whose service is down. A service that answers with GraphQL or
 * limits the rate is not down.
 */
function isOutage(outcome: Outcome): boolean {
  if (outcome.kind === 'answer' || outcome.answer) return false;
  const code = outcome.error.extensions['code'];
  return code === 'UPSTREAM_TIMEOUT' || (!!outcome.isTemporary && code !== 'UPSTREAM_RATE_LIMITED');
}

function refused(waitMs: number): Failure {
  const retryAfter = Math.ceil(waitMs / 1000);
  return {
    kind: 'failure',
    isUnsent: true,
    error: codedError(
      'UPSTREAM_UNREACHABLE',
      `Nothing was sent: the recruiting service is temporarily unavailable. Try again in ${retryAfter} s.`,
      { extensions: { retryAfter } },
    ),
  };
}
