import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { Counter, Histogram, type Registry } from 'prom-client';
import type { Cause } from '../cause.ts';
import type { Exchange, ExchangeTelemetry, Outcome } from '../http/exchange.ts';
import { isKnownPath, isProbe } from '../http/paths.ts';

/** Identifies a caller's request in the telemetry of everything that is done for it. */
interface RequestCause extends Cause {
  readonly cost: { upstreamRequests: number; pages: number };
  /** When it began, by `performance.now()`. */
  readonly begun: number;
  readonly client: string | undefined;
}

/** Narrows the type: all causes are created in this file. Returns undefined for work that no caller requested. */
export function requestCause(cause: Cause | undefined): RequestCause | undefined {
  return cause as RequestCause | undefined;
}

/**
 * Gives each request of a caller an id, and reports it when its answer, or the last part of a stream, is sent. Probes
 * are frequent, so they are logged only at the level debug, and not counted. Query strings, documents and variables may
 * name people, so they are never read.
 */
export function requestTelemetry(log: Logger, registry: Registry): ExchangeTelemetry {
  const requests = new Counter({
    name: 'recruiting_requests_total',
    // The names of other operations than trusted ones are empty.
    help: 'Requests of callers, without probes, by the name of the trusted operation and the code of the first error (OK without an error, LEFT if the caller left).',
    labelNames: ['operation', 'code'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'recruiting_request_duration_seconds',
    help: 'From the arrival of a request to the last byte of its answer, by type: query, mutation, or none if nothing was executed.',
    labelNames: ['type'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [registry],
  });
  return {
    begun: (request) => {
      const requestId = requestIdOf(request);
      const cause: RequestCause = {
        requestId,
        cost: { upstreamRequests: 0, pages: 0 },
        begun: performance.now(),
        client: clientOf(request),
      };
      return { requestId, cause };
    },
    ended: (exchange, status) => {
      const cause = requestCause(exchange.cause)!;
      const ms = performance.now() - cause.begun;
      const outcome = outcomeOf(exchange, status);
      const level = isProbe(exchange.path) ? 'debug' : 'info';
      if (log.isLevelEnabled(level)) {
        log[level](lineOf(exchange, cause, { status, ms, outcome }), 'request');
      }
      if (isProbe(exchange.path)) return;
      const { trustedName, operationType = 'none' } = exchange.notes;
      requests.inc({ operation: trustedName, code: outcome });
      duration.observe({ type: operationType }, ms / 1000);
    },
  };
}

/** Short, and without characters that have a meaning in logs, terminals or headers. */
const HARMLESS = /^[A-Za-z0-9._-]{1,64}$/;

/** Returns the id that the caller sent if it is harmless, and otherwise a new one. */
function requestIdOf(request: Pick<Exchange, 'header'>): string {
  const sent = request.header('x-request-id');
  return sent !== undefined && HARMLESS.test(sent) ? sent : randomUUID();
}

/** Returns the name that a client says it has, if it is harmless. */
function clientOf(request: Pick<Exchange, 'header'>): string | undefined {
  const name = request.header('graphql-client-name') ?? request.header('apollographql-client-name');
  return name !== undefined && HARMLESS.test(name) ? name : undefined;
}

function outcomeOf(exchange: Exchange, status: number | undefined): Outcome {
  if (exchange.hasLeft) return 'LEFT';
  const { outcome, operationType } = exchange.notes;
  return outcome ?? (operationType ? 'OK' : outcomeOfStatus(status ?? 500));
}

/** The outcome of an answer that is not a GraphQL answer. */
function outcomeOfStatus(status: number): Outcome {
  if (status < 400) return 'OK';
  return status >= 500 ? 'INTERNAL_SERVER_ERROR' : 'BAD_USER_INPUT';
}

interface Ended {
  readonly status: number | undefined;
  readonly ms: number;
  readonly outcome: Outcome;
}

/** A host name with its port; nothing else may come from a header into the log. */
const HOST = /^[A-Za-z0-9.:[\]-]{1,260}$/;

function lineOf(
  exchange: Exchange,
  { client, cost }: RequestCause,
  { status, ms, outcome }: Ended,
) {
  const { requestId, method, path, caller, notes } = exchange;
  const { operationType, trustedName } = notes;
  const host = exchange.host ?? '';
  return {
    requestId,
    method,
    // An unknown path may contain a key or name a person.
    path: isKnownPath(path) ? path : undefined,
    status,
    ms: Math.round(ms * 10) / 10,
    operationType,
    operation: trustedName || undefined,
    code: outcome === 'OK' ? undefined : outcome,
    // The one that ALLOWED_HOSTS may lack.
    host: status === 421 && HOST.test(host) ? host : undefined,
    // The operator chose the name of an API key. The subject of a token may be a person.
    caller: caller?.name.startsWith('key:') ? caller.name.slice('key:'.length) : undefined,
    client,
    upstreamRequests: cost.upstreamRequests || undefined,
    pages: cost.pages || undefined,
  };
}
