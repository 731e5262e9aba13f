import type { GraphQLError } from 'graphql';
import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import type { OutgoingRequest } from '../service/request.ts';
import type { UpstreamAnswer, UpstreamFailure } from './read-response.ts';

/** One request with all its attempts. */
export interface FollowedRequest {
  /** Returns a failure if the request may not be sent now; otherwise undefined. */
  refusal(): UpstreamFailure | undefined;
  /** Begins an attempt. Returns a failure if it may not be sent now: then it does not begin. */
  begin(): UpstreamFailure | undefined;
  /** Ends the attempt. @param answer undefined if all callers have left, which says nothing about the service */
  end(answer: UpstreamAnswer | undefined): void;
  /** Reports the failure of the last attempt. Not for trials. */
  gaveUp(failure: UpstreamFailure): void;
}

export interface BreakerTelemetry {
  breakerOpened(error: GraphQLError): void;
  breakerClosed(downMs: number): void;
}

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
 * query unless there are only mutations.
 */
export function createBreaker(clock: Clock, telemetry: BreakerTelemetry) {
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

  class Followed implements FollowedRequest {
    readonly #kind: OutgoingRequest['kind'] | 'trial';
    /** When the first attempt began. */
    #since = Infinity;
    /** The number of answers when the latest attempt began. */
    #answersBefore = -1;
    /** The attempt, if it is a probe. */
    #probe: object | undefined;

    constructor(kind: OutgoingRequest['kind'] | 'trial') {
      this.#kind = kind;
    }

    refusal(): UpstreamFailure | undefined {
      if (!isOpen || this.#kind === 'trial') return undefined;
      const waitMs = pausedUntil + (this.#kind === 'query' ? 0 : pauseMs) - clock.elapsed();
      return waitMs > 0 ? refused(waitMs) : undefined;
    }

    begin(): UpstreamFailure | undefined {
      // The breaker may have opened while the request waited for its turn.
      const answer = this.refusal();
      if (answer) return answer;
      this.#since = Math.min(this.#since, clock.elapsed());
      this.#answersBefore = answers;
      this.#probe = isOpen && this.#kind !== 'trial' ? beginProbe() : undefined;
      return undefined;
    }

    end(answer: UpstreamAnswer | undefined): void {
      if (answer && !isOutage(answer)) answered();
      else if (!this.#probe || this.#probe !== probe) return;
      else if (answer) pause(pauseMs * 2);
      else {
        pausedUntil = clock.elapsed();
        probe = undefined;
      }
    }

    gaveUp(failure: UpstreamFailure): void {
      if (isOpen || !isOutage(failure)) return;
      // Other requests were answered while this one was in flight, or this one was never sent.
      if (this.#answersBefore !== answers) return;
      failures += 1;
      failingSince = Math.min(failingSince, this.#since);
      const hasLasted = clock.elapsed() - failingSince >= FAILING_MS;
      if (failures >= FAILURES_TO_OPEN && hasLasted) open(failure.error);
    }
  }

  return {
    /** @param kind a trial may be sent at any time, and only its answer counts */
    follow: (kind: OutgoingRequest['kind'] | 'trial'): FollowedRequest => new Followed(kind),
  };

  function beginProbe(): object {
    pausedUntil = clock.elapsed() + Math.max(pauseMs, PROBE_MS);
    return (probe = {});
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
 * 429 is not down.
 */
function isOutage(answer: UpstreamAnswer): boolean {
  if (answer.kind !== 'failure' || answer.result) return false;
  const code = answer.error.extensions['code'];
  return code === 'UPSTREAM_TIMEOUT' || (answer.isTemporary && code !== 'UPSTREAM_RATE_LIMITED');
}

function refused(waitMs: number): UpstreamFailure {
  const retryAfter = Math.ceil(waitMs / 1000);
  return {
    kind: 'failure',
    isTemporary: false,
    error: codedError(
      'UPSTREAM_UNREACHABLE',
      `Nothing was sent: the recruiting service is temporarily unavailable. Try again in ${retryAfter} s.`,
      { extensions: { retryAfter } },
    ),
  };
}
