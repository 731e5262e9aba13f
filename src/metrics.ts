import { CONTENT_TYPE, createExposition } from './metrics/exposition.ts';
import { readingMetrics, type AnswerLoad, type DrainLoad } from './metrics/reading.ts';
import { requestMetrics } from './metrics/requests.ts';
import { tokenMetrics } from './metrics/tokens.ts';
import { upstreamMetrics, type UpstreamLoad } from './metrics/upstream.ts';
import type { TokenStanding } from './tokens/token-standing.ts';

/** What Prometheus reads of one gateway. Names and labels hold nothing personal and nothing secret. */
export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
  readonly requests: ReturnType<typeof requestMetrics>;
  readonly upstream: ReturnType<typeof upstreamMetrics>;
  readonly reading: ReturnType<typeof readingMetrics>;
  /** @param seconds from the mark to the end */
  exchanged(outcome: string, seconds: number): void;
  /** @param drift how many differences of each kind the live schema has from the snapshot */
  schemaLookedAt(drift: Readonly<Record<string, number>>): void;
}

export interface MetricsParts {
  readonly version: string;
  /** Undefined while there are none. */
  readonly tokens: () => TokenStanding | undefined;
  readonly upstreamLoad: () => UpstreamLoad;
  readonly drainLoad: () => DrainLoad;
  readonly answerLoad: () => AnswerLoad;
}

export function createMetrics(parts: MetricsParts): Metrics {
  const { version, tokens, upstreamLoad, drainLoad, answerLoad } = parts;
  const exposition = createExposition();
  exposition.gauge(
    {
      name: 'recruiting_build_info',
      help: 'Always 1; the version is its label.',
      labelNames: ['version'],
    },
    () => [[1, version]],
  );
  const drift = new Map<string, number>();
  exposition.gauge(
    {
      name: 'recruiting_schema_drift',
      help: 'Differences of the live schema from the snapshot, at the last look.',
      labelNames: ['kind'],
    },
    () => Array.from(drift, ([kind, count]) => [count, kind] as const),
  );
  return {
    contentType: CONTENT_TYPE,
    text: async () => exposition.text(),
    requests: requestMetrics(exposition),
    upstream: upstreamMetrics(exposition, upstreamLoad),
    reading: readingMetrics(exposition, { drainLoad, answerLoad }),
    exchanged: tokenMetrics(exposition, tokens),
    schemaLookedAt: (found) => {
      for (const [kind, count] of Object.entries(found)) drift.set(kind, count);
    },
  };
}
