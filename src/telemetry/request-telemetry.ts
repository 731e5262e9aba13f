import { randomUUID } from 'node:crypto';
import { context as contexts, ROOT_CONTEXT, type Context } from '@opentelemetry/api';
import type { Logger } from 'pino';
import type { Cause } from '../cause.ts';
import {
  type Exchange,
  type ExchangeTelemetry,
  type Outcome,
  outcomeOfStatus,
  isProbe,
} from '../http/exchange.ts';
import { isKnownPath } from '../http/addresses.ts';
import type { MetricRegistry } from './metrics.ts';
import { end, spanOf, type Spans } from './spans.ts';

/** Identifies a caller's request in the telemetry of everything that is done for it. */
export interface RequestCause extends Cause {
  /** Contains the span below which the next spans belong. */
  readonly context: Context;
  readonly cost: {
    upstreamRequests: number;
    pages: number;
    /** The service's own id of the last request to it that failed. */
    failedServiceRequest: string | undefined;
  };
  /** By `performance.now()`. */
  readonly begun: number;
}

/** Narrows the type: all causes are created in this file. Undefined for what the gateway does by itself. */
export function requestCause(cause: Cause | undefined): RequestCause | undefined {
  return cause as RequestCause | undefined;
}

interface RequestTelemetryParts {
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  readonly spans: Spans;
}

/**
 * Gives each request of a caller an id and a span, and reports it when its answer, or the last part of a stream, is
 * sent. Probes are frequent, so they are logged at the level debug only. Query strings, documents and variables may
 * name people, so they are never read.
 */
export function requestTelemetry(parts: RequestTelemetryParts): ExchangeTelemetry {
  const { log, spans } = parts;
  const metrics = requestMetrics(parts.metrics);
  return {
    run: (exchange, work) => {
      const begun = performance.now();
      const requestId = requestIdOf(exchange);
      exchange.requestId = requestId;
      exchange.replyHeaders['x-request-id'] = requestId;
      const context = isProbe(exchange.path) ? ROOT_CONTEXT : beginSpan(exchange, spans);
      const cost = { upstreamRequests: 0, pages: 0, failedServiceRequest: undefined };
      const cause: RequestCause = { requestId, context, cost, begun };
      exchange.cause = cause;
      return contexts.with(context, work);
    },
    ended: (exchange, status) => {
      const cause = requestCause(exchange.cause)!;
      const ms = performance.now() - cause.begun;
      const outcome = outcomeOf(exchange, status);
      writeLine(log, exchange, { cause, status, ms, outcome });
      if (isProbe(exchange.path)) return;
      const { trustedName, operationType = 'none' } = exchange;
      metrics.requests(1, trustedName, outcome);
      metrics.duration(ms / 1000, operationType);
      endSpan(exchange, { cause, status, ms, outcome });
    },
  };
}

/** Probes are not counted. The outcome comes from a closed list. */
function requestMetrics({ counter, histogram }: MetricRegistry) {
  const requests = counter({
    name: 'recruiting_requests_total',
    // Other names than those of trusted operations are empty: callers do not decide how many series there are.
    help: 'Requests of callers, by the name of the trusted operation and the code of the first error (OK without an error).',
    labelNames: ['operation', 'code'],
  });
  const duration = histogram({
    name: 'recruiting_request_duration_seconds',
    help: 'From the arrival of a request to the last byte of its answer.',
    labelNames: ['type'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  });
  return { requests, duration };
}

/** Short, and without characters that have a meaning in a log, a terminal or a header. */
const HARMLESS = /^[A-Za-z0-9._-]{1,64}$/;

/** The id that the caller sent if it is harmless, and a new one otherwise. */
function requestIdOf(exchange: Exchange): string {
  const sent = exchange.header('x-request-id');
  return sent !== undefined && HARMLESS.test(sent) ? sent : randomUUID();
}

function outcomeOf(exchange: Exchange, status: number | undefined): Outcome {
  if (exchange.hasLeft) return 'LEFT';
  return exchange.outcome ?? (exchange.operationType ? 'OK' : outcomeOfStatus(status ?? 500));
}

interface Ended {
  readonly cause: RequestCause;
  readonly status: number | undefined;
  readonly ms: number;
  readonly outcome: Outcome;
}

function writeLine(log: Logger, exchange: Exchange, { cause, status, ms, outcome }: Ended): void {
  const level = isProbe(exchange.path) ? 'debug' : 'info';
  if (!log.isLevelEnabled(level)) return;
  const { requestId, method, path, operationType, trustedName, caller } = exchange;
  log[level](
    {
      requestId,
      method,
      // A path where nothing is served may contain a key or name a person.
      path: isKnownPath(path) ? path : undefined,
      status,
      ms: Math.round(ms * 10) / 10,
      operationType,
      operation: trustedName || undefined,
      code: outcome === 'OK' ? undefined : outcome,
      caller: keyName(caller?.name),
      upstreamRequests: cause.cost.upstreamRequests || undefined,
      pages: cause.cost.pages || undefined,
      serviceRequestId: cause.cost.failedServiceRequest,
    },
    'request',
  );
}

/** Only names of API keys, which the operator gave: the subject of a token may be a person. */
function keyName(caller: string | undefined): string | undefined {
  return caller?.startsWith('key:') ? caller.slice('key:'.length) : undefined;
}

function beginSpan(exchange: Exchange, spans: Spans) {
  const headers = { get: (name: string) => exchange.header(name) ?? null };
  return spans.request(headers as Headers, { 'http.request.method': exchange.method });
}

function endSpan(
  { operationType, trustedName, method }: Exchange,
  { cause, status, outcome }: Ended,
): void {
  const span = spanOf(cause.context);
  if (!span.isRecording()) return span.end();
  span.updateName(operationType ? `${operationType} ${trustedName}`.trimEnd() : method);
  span.setAttributes({
    ...(status !== undefined && { 'http.response.status_code': status }),
    ...(operationType && { 'graphql.operation.type': operationType }),
    ...(trustedName && { 'graphql.operation.name': trustedName }),
  });
  end(span, outcome === 'OK' ? undefined : outcome, !MISTAKES_OF_CALLERS.has(outcome));
}

/** Outcomes that are not a failure of the gateway. */
const MISTAKES_OF_CALLERS = new Set<Outcome>([
  'BAD_USER_INPUT',
  'CURSOR_INVALID',
  'DRAIN_LIMIT_EXCEEDED',
  'FORBIDDEN',
  'LEFT',
  'OPERATION_TOO_COMPLEX',
  'RATE_LIMITED',
  'UNAUTHENTICATED',
]);
