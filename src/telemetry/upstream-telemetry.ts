import {
  ROOT_CONTEXT,
  SpanKind,
  type Attributes,
  type Context,
  type Span,
} from '@opentelemetry/api';
import type { GraphQLError } from 'graphql';
import type { Logger } from 'pino';
import { knownCode } from '../errors.ts';
import type { ReadAs } from '../upstream/read-response.ts';
import type { ReportedRequest, UpstreamOutcome, UpstreamTelemetry } from '../upstream/telemetry.ts';
import type { MetricRegistry } from './metrics.ts';
import { requestCause, type RequestCause } from './request-telemetry.ts';
import { end, REQUEST_ID, spanOf, traceHeaders, type Spans } from './spans.ts';

interface UpstreamTelemetryParts {
  readonly metrics: MetricRegistry;
  readonly spans: Spans;
  readonly log: Logger;
  readonly upstreamLoad: () => UpstreamLoad;
  /** Attributes that name the service. */
  readonly server: Attributes;
}

export interface UpstreamLoad {
  readonly inFlight: number;
  readonly waiting: Readonly<Record<'interactive' | 'drain', number>>;
}

/** Requests to the service, apart from exchanges of tokens. They carry the id and the trace of the caller's request. */
export function upstreamTelemetry(parts: UpstreamTelemetryParts): UpstreamTelemetry {
  const { spans, log, server } = parts;
  const metrics = upstreamMetrics(parts);
  const attributes = { 'http.request.method': 'POST', ...server };

  class Sending implements ReportedRequest {
    readonly headers: Readonly<Record<string, string>>;
    readonly #begun = performance.now();
    readonly #cause: RequestCause | undefined;
    readonly #span: Span;
    #requestId: string | undefined;

    constructor(cause: RequestCause | undefined) {
      this.#cause = cause;
      const parent = cause?.context ?? ROOT_CONTEXT;
      const context = spans.begin('POST', SpanKind.CLIENT, parent, attributes);
      this.#span = spanOf(context);
      this.headers = headersFor(cause, context);
      if (cause) cause.cost.upstreamRequests += 1;
    }

    answered(status: number, requestId: string | undefined): void {
      this.#requestId = requestId;
      this.#span.setAttribute('http.response.status_code', status);
    }

    read(how: ReadAs): void {
      metrics.answers(1, how);
    }

    ended(outcome: UpstreamOutcome, error?: GraphQLError): void {
      metrics.requests(1, outcome);
      metrics.duration((performance.now() - this.#begun) / 1000);
      const hasFailed = outcome !== 'ok' && outcome !== 'left';
      if (hasFailed && this.#requestId !== undefined) this.#noteRequestId(this.#requestId);
      end(this.#span, hasFailed ? outcome : undefined);
      if (!error || !log.isLevelEnabled('debug')) return;
      log.debug(
        { requestId: this.#cause?.requestId, serviceRequestId: this.#requestId, err: error },
        'a request to the service got no usable answer',
      );
    }

    #noteRequestId(id: string): void {
      this.#span.setAttribute(REQUEST_ID, [id]);
      if (this.#cause) this.#cause.cost.failedServiceRequest = id;
    }
  }

  return {
    sending: (cause) => new Sending(requestCause(cause)),
    retrying: (cause, code, attempt) => {
      const known = knownCode(code);
      metrics.retries(1, known);
      if (!log.isLevelEnabled('debug')) return;
      const requestId = requestCause(cause)?.requestId;
      log.debug({ requestId, code: known, attempt }, 'sending a request again');
    },
    breakerChanged: (state, { error, downMs }) => {
      metrics.breaker(state !== 'closed');
      if (error) {
        log.warn(
          { code: error.extensions['code'], err: error },
          'the recruiting service is down: the circuit breaker is open, and requests are refused until it answers',
        );
      } else if (downMs !== undefined) {
        const seconds = Math.round(downMs / 1000);
        log.info(
          { seconds },
          'the recruiting service answers again: the circuit breaker is closed',
        );
      }
    },
  };
}

function headersFor(cause: RequestCause | undefined, context: Context): Record<string, string> {
  const headers = traceHeaders(context) ?? {};
  if (cause) headers['x-request-id'] = cause.requestId;
  return headers;
}

function upstreamMetrics({
  metrics: { counter, gauge, histogram },
  upstreamLoad: load,
}: UpstreamTelemetryParts) {
  const requests = counter({
    name: 'recruiting_upstream_requests_total',
    help: 'Requests sent to the service, each attempt, by outcome: ok, graphql_error, left (no caller waited any more), or an error code.',
    labelNames: ['outcome'],
  });
  const answers = counter({
    name: 'recruiting_upstream_answers_total',
    help: 'GraphQL answers of the service, by how they were read: scanned as bytes, or general, value by value.',
    labelNames: ['read'],
  });
  const retries = counter({
    name: 'recruiting_upstream_retries_total',
    help: 'Requests that were sent again, by the error code of the attempt before.',
    labelNames: ['code'],
  });
  const duration = histogram({
    name: 'recruiting_upstream_request_duration_seconds',
    help: 'From sending a request to the end of its answer, each attempt, without waiting for a turn.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  });
  gauge(
    {
      name: 'recruiting_upstream_requests_in_flight',
      help: 'Requests that have their turn, at most UPSTREAM_CONCURRENCY.',
    },
    () => [[load().inFlight]],
  );
  gauge(
    {
      name: 'recruiting_upstream_requests_waiting',
      help: 'Requests that wait for their turn.',
      labelNames: ['priority'],
    },
    () => {
      const { interactive, drain } = load().waiting;
      return [
        [interactive, 'interactive'],
        [drain, 'drain'],
      ];
    },
  );
  let isOpen = false;
  gauge(
    {
      name: 'recruiting_upstream_breaker_open',
      help: '1 while the circuit breaker is open: the service is down, and requests are refused except for a probe now and then.',
      aggregator: 'max',
    },
    () => [[isOpen ? 1 : 0]],
  );
  return { requests, answers, retries, duration, breaker: (open: boolean) => void (isOpen = open) };
}
