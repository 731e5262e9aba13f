import { context as contexts, ROOT_CONTEXT } from '@opentelemetry/api';
import type { Logger } from 'pino';
import type { Outcome } from '../http/watching/outcome.ts';
import type { RequestBegin, RequestEnd } from '../http/watching/watch-requests.ts';
import type { Metrics } from '../metrics.ts';
import type { Cause } from './cause.ts';
import { end, spanOf, type Spans } from './spans.ts';

interface RequestParts {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly spans: Spans;
  readonly stopwatch: () => number;
  readonly callerOf: (request: Request) => { readonly name: string } | undefined;
}

/** A span, a line and a count for one request of a caller. Probes come often and say little: a line for who debugs. */
export function watchRequest(
  request: Request,
  { requestId, path, isProbe }: RequestBegin,
  { log, metrics, spans, stopwatch, callerOf }: RequestParts,
) {
  const begun = stopwatch();
  const { method, headers } = request;
  const context = isProbe
    ? ROOT_CONTEXT
    : spans.request(headers, { 'http.request.method': method });
  const cause: Cause = { requestId, context, cost: { upstreamRequests: 0, pages: 0 } };
  return {
    cause,
    run: <T>(work: () => T): T => contexts.with(context, work),
    ended: (told: RequestEnd) => {
      const ms = stopwatch() - begun;
      const { status, operationType, operation, outcome } = told;
      log[isProbe ? 'debug' : 'info'](
        {
          requestId,
          method,
          path,
          status,
          ms: Math.round(ms * 10) / 10,
          operationType,
          operation: operation || undefined,
          code: outcome === 'OK' ? undefined : outcome,
          caller: keyName(callerOf(request)?.name),
          upstreamRequests: cause.cost.upstreamRequests || undefined,
          pages: cause.cost.pages || undefined,
        },
        'request',
      );
      if (isProbe) return;
      metrics.requests.ended({ operation, operationType, outcome }, ms / 1000);
      const span = spanOf(context);
      span.updateName(operationType ? `${operationType} ${operation}`.trimEnd() : method);
      span.setAttributes({
        ...(status !== undefined && { 'http.response.status_code': status }),
        ...(operationType && { 'graphql.operation.type': operationType }),
        ...(operation && { 'graphql.operation.name': operation }),
      });
      end(span, outcome === 'OK' ? undefined : outcome, !MISTAKES_OF_CALLERS.has(outcome));
    },
  };
}

/** Names that the operator gave; the subject of a token may be a person. */
function keyName(caller: string | undefined): string | undefined {
  return caller?.startsWith('key:') ? caller.slice('key:'.length) : undefined;
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
