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

type BreakerTelemetry = Pick<UpstreamTelemetry, 'breakerOpened' | 'breakerClosed'>;

/**
 * A circuit breaker: while the service is down, requests fail at once instead of waiting in vain. It opens when several
 * requests in a row got no answer. After a pause it lets one request through, the probe; each failed probe doubles the
 * pause, and any answer closes the breaker. While it is open, queries and mutations are refused alike; the probe is a
 * query unless there are only mutations.
 */
export class Breaker {
  readonly #clock: Clock;
  readonly #telemetry: BreakerTelemetry;
  #isOpen = false;
  #answers = 0;
  #failures = 0;
  #failingSince = Infinity;
  #openedAt = 0;
  #pauseMs = FIRST_PAUSE_MS;
  /** When the next query is let through. */
  #pausedUntil = 0;
  /** The attempt in flight that shows whether the service answers again. */
  #probe: object | undefined;
  /** When the attempt that a failure ended began, and the number of answers then. */
  readonly #begun = new WeakMap<Failure, { readonly at: number; readonly answers: number }>();

  constructor(clock: Clock, telemetry: BreakerTelemetry) {
    this.#clock = clock;
    this.#telemetry = telemetry;
  }

  /** Around all attempts of a request: refuses it before it waits for its turn, and counts its failure once. */
  readonly requests: Wrapper = (next) => async (request, sender) => {
    const refusal = this.#refusalOf(request);
    if (refusal) return refusal;
    const outcome = await next(request, sender);
    if (outcome.kind === 'failure') this.#failed(outcome);
    return outcome;
  };

  /** Around each attempt: the breaker may have opened while the request waited for its turn. */
  readonly attempts: Wrapper = (next) => async (request, sender) => {
    const refusal = this.#refusalOf(request);
    if (refusal) return refusal;
    const begin = { at: this.#clock.elapsed(), answers: this.#answers };
    const own = this.#isOpen ? this.#beginProbe() : undefined;
    let outcome: Outcome | undefined;
    try {
      outcome = await next(request, sender);
      if (outcome.kind === 'failure') this.#begun.set(outcome, begin);
      return outcome;
    } finally {
      this.#ended(outcome, own);
    }
  };

  #refusalOf({ kind }: OutgoingRequest): Failure | undefined {
    if (!this.#isOpen) return undefined;
    const until = this.#pausedUntil + (kind === 'query' ? 0 : this.#pauseMs);
    const waitMs = until - this.#clock.elapsed();
    return waitMs > 0 ? refused(waitMs) : undefined;
  }

  #beginProbe(): object {
    this.#pausedUntil = this.#clock.elapsed() + Math.max(this.#pauseMs, PROBE_MS);
    return (this.#probe = {});
  }

  /** @param outcome undefined if all callers have left, or there is no token, which says nothing about the service */
  #ended(outcome: Outcome | undefined, own: object | undefined): void {
    if (outcome && !isOutage(outcome)) this.#answered();
    else if (!own || own !== this.#probe) return;
    else if (outcome) this.#pause(this.#pauseMs * 2);
    else {
      this.#pausedUntil = this.#clock.elapsed();
      this.#probe = undefined;
    }
  }

  #answered(): void {
    this.#answers += 1;
    this.#failures = 0;
    this.#failingSince = Infinity;
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#probe = undefined;
    this.#telemetry.breakerClosed(this.#clock.elapsed() - this.#openedAt);
  }

  #failed(failure: Failure): void {
    const last = this.#begun.get(failure);
    // Without an attempt it says nothing; with answers during it, another request showed that the service works.
    if (this.#isOpen || !last || last.answers !== this.#answers || !isOutage(failure)) return;
    this.#failures += 1;
    this.#failingSince = Math.min(this.#failingSince, last.at);
    const hasLasted = this.#clock.elapsed() - this.#failingSince >= FAILING_MS;
    if (this.#failures >= FAILURES_TO_OPEN && hasLasted) this.#open(failure.error);
  }

  #open(error: GraphQLError): void {
    this.#isOpen = true;
    this.#openedAt = this.#clock.elapsed();
    this.#pause(FIRST_PAUSE_MS);
    this.#telemetry.breakerOpened(error);
  }

  #pause(ms: number): void {
    this.#pauseMs = Math.min(ms, LONGEST_PAUSE_MS);
    this.#pausedUntil = this.#clock.elapsed() + this.#pauseMs;
    this.#probe = undefined;
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
