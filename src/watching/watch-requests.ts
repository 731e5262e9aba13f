import { randomUUID } from 'node:crypto';
import type { AsyncLocalStorage } from 'node:async_hooks';
import { context as contexts, ROOT_CONTEXT } from '@opentelemetry/api';
import type { Logger } from 'pino';
import {
  type Exchange,
  type ExchangeTelemetry,
  type Outcome,
  outcomeOfStatus,
} from '../http/exchange.ts';
import { isKnownPath, isProbe } from '../http/paths.ts';
import type { Metrics } from '../metrics.ts';
import type { WatchedCause } from './cause.ts';
import { end, spanOf, type Spans } from './spans.ts';

export interface RequestParts {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly spans: Spans;
  readonly stopwatch: () => number;
  /** Of what is running. */
  readonly current: AsyncLocalStorage<WatchedCause>;
}

/** What stands for a request of a caller. */
interface RequestCause extends WatchedCause {
  readonly begun: number;
}

/**
 * A name, a span, a line and a count for each request of a caller; of a stream when it is over. Probes come often
 * and say little: a line for who debugs. No query string, no document, no variables are looked at, since they may
 * name people.
 */
export function watchRequests(parts: RequestParts): ExchangeTelemetry {
  const { log, metrics, spans, stopwatch, current } = parts;
  return {
    run: (exchange, work) => {
      const begun = stopwatch();
      const requestId = requestIdOf(exchange);
      exchange.requestId = requestId;
      exchange.replyHeaders['x-request-id'] = requestId;
      const context = isProbe(exchange.path) ? ROOT_CONTEXT : beginSpan(exchange, spans);
      const cost = { upstreamRequests: 0, pages: 0 };
      const cause: RequestCause = { requestId, context, cost, begun };
      exchange.cause = cause;
      return current.run(cause, () => contexts.with(context, work));
    },
    ended: (exchange, status) => {
      const cause = exchange.cause as RequestCause;
      const ms = stopwatch() - cause.begun;
      const outcome = outcomeOf(exchange, status);
      writeLine(log, exchange, { cause, status, ms, outcome });
      if (isProbe(exchange.path)) return;
      const { trustedName: operation, operationType } = exchange;
      metrics.requests.ended({ operation, operationType, outcome }, ms / 1000);
      endSpan(exchange, cause, status, outcome);
    },
  };
}

/** Short, and of nothing that a log, a terminal or a header could take for something else. */
const HARMLESS = /^[A-Za-z0-9._-]{1,64}$/;

/** What the caller calls the request, where that is harmless; else a new name. */
function requestIdOf(exchange: Exchange): string {
  const given = exchange.header('x-request-id');
  return given !== undefined && HARMLESS.test(given) ? given : randomUUID();
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
      // Where nothing is served, an address that somebody made up may hold a key, or name people.
      path: isKnownPath(path) ? path : undefined,
      status,
      ms: Math.round(ms * 10) / 10,
      operationType,
      operation: trustedName || undefined,
      code: outcome === 'OK' ? undefined : outcome,
      caller: keyName(caller?.name),
      upstreamRequests: cause.cost.upstreamRequests || undefined,
      pages: cause.cost.pages || undefined,
    },
    'request',
  );
}

/** Names that the operator gave; the subject of a token may be a person. */
function keyName(caller: string | undefined): string | undefined {
  return caller?.startsWith('key:') ? caller.slice('key:'.length) : undefined;
}

function beginSpan(exchange: Exchange, spans: Spans) {
  const headers = { get: (name: string) => exchange.header(name) ?? null };
  return spans.request(headers as Headers, { 'http.request.method': exchange.method });
}

function endSpan(
  { operationType, trustedName, method }: Exchange,
  { context }: WatchedCause,
  status: number | undefined,
  outcome: Outcome,
): void {
  const span = spanOf(context);
  span.updateName(operationType ? `${operationType} ${trustedName}`.trimEnd() : method);
  span.setAttributes({
    ...(status !== undefined && { 'http.response.status_code': status }),
    ...(operationType && { 'graphql.operation.type': operationType }),
    ...(trustedName && { 'graphql.operation.name': trustedName }),
  });
  end(span, outcome === 'OK' ? undefined : outcome, !MISTAKES_OF_CALLERS.has(outcome));
}

/** No failure of the gateway's. */
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
