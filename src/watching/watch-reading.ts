import { ROOT_CONTEXT, SpanKind } from '@opentelemetry/api';
import type { Metrics } from '../metrics.ts';
import { knownCode } from '../errors.ts';
import type { ReadingTelemetry } from '../plans/telemetry.ts';
import { watched } from './cause.ts';
import { end, spanOf, type Spans } from './spans.ts';

/** Pages and walks; what a walk asks for belongs to the request of who began it. */
export function watchReading({
  metrics,
  spans,
}: {
  readonly metrics: Metrics;
  readonly spans: Spans;
}): ReadingTelemetry {
  return {
    pageRead: (cause) => {
      metrics.reading.pageRead();
      const cost = watched(cause)?.cost;
      if (cost) cost.pages += 1;
    },
    walkBegun: (kind, list, given) => {
      const cause = watched(given);
      const attributes = { 'recruiting.list': list };
      const parent = cause?.context ?? ROOT_CONTEXT;
      const context = spans.begin(kind, SpanKind.INTERNAL, parent, attributes);
      return {
        cause: cause && (context === cause.context ? cause : { ...cause, context }),
        ended: (outcome) => {
          const isError = typeof outcome !== 'string';
          const told = isError ? knownCode(outcome.code) : outcome;
          metrics.reading.walkEnded(kind, told);
          end(spanOf(context), isError ? told : undefined);
        },
      };
    },
    walkPlanned: metrics.reading.walkPlanned,
    placesLookedUp: metrics.reading.placesLookedUp,
  };
}
