import type { GraphQLError } from 'graphql';
import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import type { Failure, Outcome, Wrapper } from './request.ts';
import type { UpstreamTelemetry } from './telemetry.ts';

/** Failures in a row, each after all its attempts, over at least this time: a short overload passes by itself. */
const FAILURES_TO_OPEN = 5;
const FAILING_MS = 2_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** After this time the next probe is sent, since this one may hang where others would not. */
const PROBE_MS = 5_000;

type BreakerTelemetry = Pick<UpstreamTelemetry, 'breakerOpened' | 'breakerClosed'>;

/**
 * A circuit breaker: while the service is down, requests fail at once instead of waiting in vain. It opens when several
 * requests in a row got no answer. After a pause it lets one request through, the probe; each failed probe doubles the
 * pause, and any answer closes the breaker.
 */
export class Breaker {
  readonly #clock: Clock;
  readonly #telemetry: BreakerTelemetry;
  #isOpen = false;
  #failures = 0;
  #failingSince = Infinity;
  #openedAt = 0;
  #pauseMs = FIRST_PAUSE_MS;
  /** When the next request is let through. */
  #pausedUntil = 0;

  constructor(clock: Clock, telemetry: BreakerTelemetry) {
    this.#clock = clock;
    this.#telemetry = telemetry;
  }

  /** Around all attempts of a request: refuses it before it waits for its turn, and counts its failure once. */
  readonly requests: Wrapper = (next) => async (request, sender) => {
    const refusal = this.#refusal();
    if (refusal) return refusal;
    const outcome = await next(request, sender);
    if (outcome.kind === 'failure') this.#failed(outcome);
    return outcome;
  };

  /** Around each attempt: the breaker may have opened while the request waited for its turn. */
  readonly attempts: Wrapper = (next) => async (request, sender) => {
    const refusal = this.#refusal();
    if (refusal) return refusal;
    const isProbe = this.#isOpen;
    if (isProbe) this.#pausedUntil = this.#clock.elapsed() + Math.max(this.#pauseMs, PROBE_MS);
    let outcome: Outcome | undefined;
    try {
      outcome = await next(request, sender);
      return outcome;
    } finally {
      // Without an outcome all callers have left, or there is no token, which says nothing about the service.
      if (outcome && !isOutage(outcome)) this.#answered();
      else if (isProbe) this.#pause(outcome ? 2 * this.#pauseMs : 0);
    }
  };

  #refusal(): Failure | undefined {
    const waitMs = this.#isOpen ? this.#pausedUntil - this.#clock.elapsed() : 0;
    return waitMs > 0 ? refused(waitMs) : undefined;
  }

  #answered(): void {
    this.#failures = 0;
    this.#failingSince = Infinity;
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#telemetry.breakerClosed(this.#clock.elapsed() - this.#openedAt);
  }

  #failed(failure: Failure): void {
    if (this.#isOpen || failure.isUnsent || !isOutage(failure)) return;
    const now = this.#clock.elapsed();
    this.#failures += 1;
    this.#failingSince = Math.min(this.#failingSince, now);
    if (this.#failures >= FAILURES_TO_OPEN && now - this.#failingSince >= FAILING_MS)
      this.#open(failure.error);
  }

  #open(error: GraphQLError): void {
    this.#isOpen = true;
    this.#openedAt = this.#clock.elapsed();
    this.#pause(FIRST_PAUSE_MS);
    this.#telemetry.breakerOpened(error);
  }

  /** @param ms 0: the next request is let through, and the pause stays as it is */
  #pause(ms: number): void {
    if (ms > 0) this.#pauseMs = Math.min(ms, LONGEST_PAUSE_MS);
    this.#pausedUntil = this.#clock.elapsed() + Math.min(ms, LONGEST_PAUSE_MS);
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
