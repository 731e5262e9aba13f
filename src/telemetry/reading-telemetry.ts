import { ROOT_CONTEXT, SpanKind } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { knownCode } from '../errors.ts';
import type { ReadingTelemetry } from '../plans/telemetry.ts';
import type { MetricRegistry } from './metrics.ts';
import { requestCause } from './request-telemetry.ts';
import { end, spanOf, type Spans } from './spans.ts';

interface ReadingTelemetryParts extends ReadingLoad {
  readonly metrics: MetricRegistry;
  readonly spans: Spans;
  readonly log: Logger;
}

export interface ReadingLoad {
  readonly drainLoad: () => { readonly running: number; readonly waiting: number };
  readonly answerLoad: () => { readonly bytes: number; readonly waiting: number };
  readonly requestBytes: () => number;
}

/** Pages and walks. The requests of a walk belong to the caller's request that began it. */
export function readingTelemetry(parts: ReadingTelemetryParts): ReadingTelemetry {
  const { spans } = parts;
  const metrics = readingMetrics(parts);
  return {
    pageRead: (of) => {
      metrics.pages(1);
      const cost = requestCause(of)?.cost;
      if (cost) cost.pages += 1;
    },
    resultFailed: (type, reason) => metrics.failedResults(1, type, reason),
    walkBegun: (kind, list, of) => {
      const cause = requestCause(of);
      const attributes = { 'recruiting.list': list };
      const parent = cause?.context ?? ROOT_CONTEXT;
      const context = spans.begin(kind, SpanKind.INTERNAL, parent, attributes);
      return {
        cause: cause && (context === cause.context ? cause : { ...cause, context }),
        ended: (outcome) => {
          const isError = typeof outcome !== 'string';
          const label = isError ? knownCode(outcome.code) : outcome;
          metrics.walks(1, kind, label);
          end(spanOf(context), isError ? label : undefined);
        },
      };
    },
    walkPlanned: (hasIndex) => metrics.plans(1, hasIndex ? 'used' : 'unused'),
    tooBig: (list) => metrics.tooBig(1, list),
    sizeChanged: (list, size) =>
      parts.log.info({ list, size }, 'the service accepts pages of another size'),
    walkFellShort: (list, found, counted) => {
      metrics.short(1, list);
      parts.log.warn(
        { list, found, counted },
        'a list ended early: the service counted more records than its pages had',
      );
    },
    positionsLookedUp: (known, unknown) => {
      metrics.lookups(known, 'hit');
      metrics.lookups(unknown, 'miss');
    },
  };
}

function readingMetrics({
  metrics: { counter, gauge },
  drainLoad,
  answerLoad,
  requestBytes,
}: ReadingTelemetryParts) {
  gauge({ name: 'recruiting_drains_running', help: 'Drains that run, at most MAX_DRAINS.' }, () => [
    [drainLoad().running],
  ]);
  gauge({ name: 'recruiting_drains_waiting', help: 'Drains that wait for their turn.' }, () => [
    [drainLoad().waiting],
  ]);
  gauge(
    {
      name: 'recruiting_answer_bytes',
      help: 'Bytes of answers that are held until they are sent, at most ANSWER_BYTES.',
    },
    () => [[answerLoad().bytes]],
  );
  gauge(
    {
      name: 'recruiting_answers_waiting',
      help: 'Parts of answers that wait until there is room for their bytes.',
    },
    () => [[answerLoad().waiting]],
  );
  gauge(
    {
      name: 'recruiting_request_bytes',
      help: 'Bytes that requests hold until they are answered: headers, bodies and variables.',
    },
    () => [[requestBytes()]],
  );
  const walks = counter({
    name: 'recruiting_walks_total',
    help: 'Walks that ended, shared ones counted once, by outcome: whole, stopped (no caller waited any more), or an error code.',
    labelNames: ['kind', 'outcome'],
  });
  const pages = counter({
    name: 'recruiting_pages_read_total',
    help: 'Pages of lists requested from the service.',
  });
  const short = counter({
    name: 'recruiting_short_walks_total',
    help: 'Walks of a whole list that found fewer records than the service counted, by list.',
    labelNames: ['list'],
  });
  const failedResults = counter({
    name: 'recruiting_upstream_failed_results_total',
    help: 'Errors that the service returned as data in place of a record or a page, by their type in its schema, and the value of their first enum.',
    labelNames: ['type', 'reason'],
  });
  const plans = counter({
    name: 'recruiting_walk_plans_total',
    help: 'Drains and lookups, by whether a page index let them read several pages at a time.',
    labelNames: ['index'],
  });
  const lookups = counter({
    name: 'recruiting_index_lookups_total',
    help: 'Records looked up by their ids, by whether a page index had a position for them.',
    labelNames: ['result'],
  });
  const tooBig = counter({
    name: 'recruiting_too_big_total',
    help: 'Requests for records of a list that failed for their size, and were sent again with fewer records.',
    labelNames: ['list'],
  });
  return { walks, pages, failedResults, short, plans, lookups, tooBig };
}
