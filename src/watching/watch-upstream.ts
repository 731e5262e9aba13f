import { ROOT_CONTEXT, SpanKind, type Attributes, type Context } from '@opentelemetry/api';
import type { Logger } from 'pino';
import type { Metrics } from '../metrics.ts';
import { knownCode } from '../errors.ts';
import type { UpstreamTelemetry } from '../upstream/telemetry.ts';
import { watched, type WatchedCause } from './cause.ts';
import { end, spanOf, traceHeaders, type Spans } from './spans.ts';

interface WatchingParts {
  readonly metrics: Metrics;
  readonly spans: Spans;
  readonly log: Logger;
  readonly stopwatch: () => number;
  readonly server: Attributes;
}

/** What goes out carries the name of the caller's request, and its trace. */
export function watchUpstream({
  metrics,
  spans,
  log,
  stopwatch,
  server,
}: WatchingParts): UpstreamTelemetry {
  const attributes = { 'http.request.method': 'POST', ...server };
  return {
    sending: (given) => {
      const cause = watched(given);
      const begun = stopwatch();
      const parent = cause?.context ?? ROOT_CONTEXT;
      const context = spans.begin('POST', SpanKind.CLIENT, parent, attributes);
      const span = spanOf(context);
      if (cause) cause.cost.upstreamRequests += 1;
      return {
        headers: headersFor(cause, context),
        answered: (status) => void span.setAttribute('http.response.status_code', status),
        read: metrics.upstream.read,
        ended: (outcome, error) => {
          metrics.upstream.ended(outcome, (stopwatch() - begun) / 1000);
          end(span, outcome === 'ok' || outcome === 'left' ? undefined : outcome);
          if (!error || !log.isLevelEnabled('debug')) return;
          log.debug(
            { requestId: cause?.requestId, err: error },
            'a request to the service got no usable answer',
          );
        },
      };
    },
    retrying: (cause, given, attempt) => {
      const code = knownCode(given);
      metrics.upstream.again(code);
      if (!log.isLevelEnabled('debug')) return;
      const requestId = watched(cause)?.requestId;
      log.debug({ requestId, code, attempt }, 'sending a request again');
    },
    breakerChanged: (state, { error, downMs }) => {
      metrics.upstream.breaker(state);
      if (error) {
        log.warn(
          { code: error.extensions['code'], err: error },
          'the recruiting service is down: requests are refused for a while',
        );
      } else if (downMs !== undefined) {
        const seconds = Math.round(downMs / 1000);
        log.info({ seconds }, 'the recruiting service answers again');
      }
    },
  };
}

function headersFor(cause: WatchedCause | undefined, context: Context): Record<string, string> {
  const headers = traceHeaders(context) ?? {};
  if (cause) headers['x-request-id'] = cause.requestId;
  return headers;
}
