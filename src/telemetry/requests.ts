import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { Counter, Histogram, type Registry } from 'prom-client';
import type { Exchange, ExchangeTelemetry, Outcome } from '../http/exchange.ts';
import { isGraphqlPath, isProbe } from '../http/paths.ts';

/**
 * Gives each request of a caller an id, and reports it when its answer, or the last part of a stream, is sent. Probes
 * are frequent, so they are logged only at the level debug, and not counted. Query strings, documents and variables may
 * name people, so they are never read.
 */
export function requestTelemetry(log: Logger, registry: Registry): ExchangeTelemetry {
  const registers = [registry];
  const requests = new Counter({
    name: 'recruiting_requests_total',
    // The names of other operations than trusted ones are empty.
    help: 'Requests of callers, without probes, by the name of the trusted operation and the code of the first error (OK without an error, LEFT if the caller left).',
    labelNames: ['operation', 'code'],
    registers,
  });
  const duration = new Histogram({
    name: 'recruiting_request_duration_seconds',
    help: 'From the arrival of a request to the last byte of its answer, by type: query, mutation, or none if nothing was executed.',
    labelNames: ['type'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers,
  });
  return {
    begun: (request) => {
      const requestId = harmless(request.header('x-request-id')) ?? randomUUID();
      const client = harmless(
        request.header('graphql-client-name') ?? request.header('apollographql-client-name'),
      );
      return { requestId, begun: performance.now(), client, upstreamRequests: 0, pages: 0 };
    },
    ended: (exchange, status) => {
      const { requestId, method, path, caller, cause, host = '' } = exchange;
      const { operationType, refused, trustedName } = exchange;
      const ms = performance.now() - cause.begun;
      const outcome = outcomeOf(exchange, status);
      log[isProbe(path) ? 'debug' : 'info'](
        {
          requestId,
          method,
          // An unknown path may contain a key or name a person.
          path: isGraphqlPath(path) || isProbe(path) ? path : undefined,
          status,
          ms: Math.round(ms * 10) / 10,
          operationType,
          operation: trustedName || undefined,
          code: outcome === 'OK' ? undefined : outcome,
          refused,
          // The one that ALLOWED_HOSTS may lack.
          host: status === 421 && HOST.test(host) ? host : undefined,
          // The operator chose the name of an API key. The subject of a token may be a person.
          caller: caller?.name.startsWith('key:') ? caller.name.slice('key:'.length) : undefined,
          client: cause.client,
          upstreamRequests: cause.upstreamRequests || undefined,
          pages: cause.pages || undefined,
        },
        'request',
      );
      if (isProbe(path)) return;
      requests.inc({ operation: trustedName, code: outcome });
      duration.observe({ type: operationType ?? 'none' }, ms / 1000);
    },
  };
}

/** Returns a text of a caller if it is short, and has no characters with a meaning in logs, terminals or headers. */
function harmless(text: string | undefined): string | undefined {
  return text !== undefined && /^[A-Za-z0-9._-]{1,64}$/.test(text) ? text : undefined;
}

/** A host name with its port; nothing else may come from a header into the log. */
const HOST = /^[A-Za-z0-9.:[\]-]{1,260}$/;

function outcomeOf({ hasLeft, outcome, operationType }: Exchange, status = 500): Outcome {
  if (hasLeft) return 'LEFT';
  if (outcome) return outcome;
  // Without an operation, it is not a GraphQL answer.
  if (operationType || status < 400) return 'OK';
  return status >= 500 ? 'INTERNAL_SERVER_ERROR' : 'BAD_USER_INPUT';
}
