import type { GraphQLError } from 'graphql';
import type { Clock } from '../clock.ts';
import { codedError } from '../errors.ts';
import type { UpstreamAnswer } from './read-response.ts';

/** Closed is the usual state: everything is sent. Half open, one request is out to see whether it is answered. */
export type BreakerState = 'closed' | 'open' | 'half-open';

/** Spares a service that is down, and those who would wait for it in vain. */
export interface Breaker {
  /** The answer to a request that shall not be sent now. */
  refusalOf(request: BreakableRequest): Failure | undefined;
  /** One exchange begins. */
  begin(request: BreakableRequest): BreakerExchange;
  /** It is not sent again: this is what it came to. */
  gaveUp(request: BreakableRequest, answer: UpstreamAnswer): void;
}

/** One object for one question, however often it is sent. */
export interface BreakableRequest {
  readonly kind: 'query' | 'mutation';
}

export interface BreakerExchange {
  ended(answer: UpstreamAnswer): void;
  /** Nobody waits for it any more: that says nothing about the service. */
  left(): void;
}

export interface BreakerParts {
  readonly clock: Clock;
  readonly onChange: OnBreakerChange;
}

/** Told whenever the service is found to be down (`why`), is tried again, and answers again (`downMs`). */
export type OnBreakerChange = (
  state: BreakerState,
  detail: { readonly why?: GraphQLError; readonly downMs?: number },
) => void;

/** Questions in a row, each with all its attempts, and all of it for so long: a short overload passes by itself. */
const FAILURES_TO_OPEN = 5;
const FAILING_MS = 2_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** A probe that is out for this long may be a question that hangs while others would not. */
const PROBE_MS = 5_000;

/**
 * Opens when so many questions in a row brought no answer at all; then one is let through after a pause, which
 * doubles each time that it fails, and any answer closes it. What is not sent any more is queries and mutations
 * alike; what is let through is a query, unless nobody asks for one.
 */
export function createBreaker({ clock, onChange }: BreakerParts): Breaker {
  let state: BreakerState = 'closed';
  let answers = 0;
  let pauseMs = FIRST_PAUSE_MS;
  /** From then on the next query is let through. */
  let pausedUntil = 0;
  let openedAt = 0;
  let probe: object | undefined;
  const begun = new WeakMap<BreakableRequest, { readonly since: number; answersBefore: number }>();
  let failures = 0;
  let failingSince = Infinity;

  return {
    refusalOf: (request) => {
      if (state === 'closed') return undefined;
      const wait = pausedUntil + (request.kind === 'query' ? 0 : pauseMs) - clock.elapsed();
      return wait > 0 ? refusal(wait) : undefined;
    },
    begin: (request) => {
      const earlier = begun.get(request);
      if (earlier) earlier.answersBefore = answers;
      else begun.set(request, { since: clock.elapsed(), answersBefore: answers });
      const exchange: BreakerExchange = {
        ended: (answer) => {
          if (!isFailure(answer)) answered();
          else if (probe === exchange) pause(pauseMs * 2);
        },
        left: () => {
          if (probe !== exchange) return;
          pausedUntil = clock.elapsed();
          change('open');
        },
      };
      if (state !== 'closed') {
        probe = exchange;
        pausedUntil = clock.elapsed() + Math.max(pauseMs, PROBE_MS);
        change('half-open');
      }
      return exchange;
    },
    gaveUp: (request, answer) => {
      const beginning = begun.get(request);
      if (state !== 'closed' || !beginning || !isFailure(answer)) return;
      // While this one was out, others were answered: it is not the service that is down.
      if (beginning.answersBefore !== answers) return;
      failures += 1;
      failingSince = Math.min(failingSince, beginning.since);
      const hasLasted = clock.elapsed() - failingSince >= FAILING_MS;
      if (failures >= FAILURES_TO_OPEN && hasLasted) open(answer);
    },
  };

  function answered(): void {
    answers += 1;
    failures = 0;
    failingSince = Infinity;
    if (state === 'closed') return;
    change('closed', { downMs: clock.elapsed() - openedAt });
  }

  function open({ error }: Failure): void {
    openedAt = clock.elapsed();
    pause(FIRST_PAUSE_MS, { why: error });
  }

  function pause(ms: number, detail: Parameters<OnBreakerChange>[1] = {}): void {
    pauseMs = Math.min(ms, LONGEST_PAUSE_MS);
    pausedUntil = clock.elapsed() + pauseMs;
    change('open', detail);
  }

  function change(next: BreakerState, detail: Parameters<OnBreakerChange>[1] = {}): void {
    if (next !== 'half-open') probe = undefined;
    if (next === state) return;
    state = next;
    onChange(state, detail);
  }
}

export type Failure = Extract<UpstreamAnswer, { kind: 'bad' }>;

/** No answer, or one of a proxy in front of a service that is down. Whoever speaks GraphQL is not down. */
function isFailure(answer: UpstreamAnswer): answer is Failure {
  if (answer.kind !== 'bad') return false;
  return answer.mayPass ? !answer.result : answer.error.extensions['code'] === 'UPSTREAM_TIMEOUT';
}

function refusal(waitMs: number): Failure {
  const retryAfter = Math.ceil(waitMs / 1000);
  return {
    kind: 'bad',
    mayPass: false,
    error: codedError(
      'UPSTREAM_UNREACHABLE',
      `Nothing was sent: the recruiting service is down, and is asked again after a pause. Try again in ${retryAfter} s.`,
      { extensions: { retryAfter } },
    ),
  };
}
