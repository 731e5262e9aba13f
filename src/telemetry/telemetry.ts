import type { Logger } from 'pino';
import type { ExchangeTelemetry } from '../http/exchange.ts';
import type { ReadingTelemetry } from '../plans/telemetry.ts';
import type { TokenHealth } from '../tokens/token-health.ts';
import type { UpstreamTelemetry } from '../upstream/telemetry.ts';
import { createMetricRegistry, type MetricRegistry, type Metrics } from './metrics.ts';
import { readingTelemetry, type ReadingLoad } from './reading-telemetry.ts';
import { requestTelemetry } from './request-telemetry.ts';
import { createSpans } from './spans.ts';
import { tokenTelemetry } from './token-telemetry.ts';
import { upstreamTelemetry, type UpstreamLoad } from './upstream-telemetry.ts';

interface TelemetryParts extends ReadingLoad {
  readonly version: string;
  readonly log: Logger;
  /** Of the service. */
  readonly baseUrl: string;
  /** Returns undefined while there are no tokens. Undefined in a worker: the primary reports the tokens. */
  readonly tokens: (() => TokenHealth | undefined) | undefined;
  readonly upstreamLoad: () => UpstreamLoad;
}

/** The metrics of a gateway, and the interfaces through which its parts report to logs, metrics and spans. */
export interface Telemetry {
  /** Names and label values contain nothing personal and nothing secret. */
  readonly metrics: Metrics;
  readonly requests: ExchangeTelemetry;
  readonly upstream: UpstreamTelemetry;
  readonly reading: ReadingTelemetry;
  /** Reports an exchange of the refresh token. */
  readonly exchanged: (outcome: string, seconds: number) => void;
  /** @param drift how many differences of each kind the live schema has from the snapshot */
  readonly schemaCompared: (drift: Readonly<Record<string, number>>) => void;
}

export function createTelemetry(parts: TelemetryParts): Telemetry {
  const metrics = createMetricRegistry();
  const spans = createSpans(parts.version);
  const server = serverOf(parts.baseUrl);

  reportVersion(metrics, parts.version);
  // Metrics are written in the order of these calls.
  return {
    metrics,
    schemaCompared: schemaTelemetry(metrics),
    requests: requestTelemetry({ ...parts, metrics, spans }),
    upstream: upstreamTelemetry({ ...parts, metrics, spans, server }),
    reading: readingTelemetry({ ...parts, metrics, spans }),
    exchanged: parts.tokens
      ? tokenTelemetry({ tokens: parts.tokens, metrics, spans, server })
      : () => {},
  };
}

/** The telemetry of an executor without a gateway. */
export function createExecutorTelemetry({
  version,
  tokens,
  ...parts
}: Pick<TelemetryParts, 'version' | 'log' | 'baseUrl' | 'upstreamLoad'> & {
  readonly tokens: () => TokenHealth | undefined;
}): Pick<Telemetry, 'upstream' | 'exchanged'> {
  const metrics = createMetricRegistry();
  const spans = createSpans(version);
  const server = serverOf(parts.baseUrl);
  return {
    upstream: upstreamTelemetry({ ...parts, metrics, spans, server }),
    exchanged: tokenTelemetry({ tokens, metrics, spans, server }),
  };
}

/** The telemetry of the primary, which keeps the tokens while its workers answer requests. */
export function createPrimaryTelemetry({
  version,
  baseUrl,
  tokens,
  workers,
}: Pick<TelemetryParts, 'version' | 'baseUrl'> & {
  readonly tokens: () => TokenHealth | undefined;
  readonly workers: () => WorkersLoad;
}): Pick<Telemetry, 'metrics' | 'exchanged'> {
  const metrics = createMetricRegistry();
  const spans = createSpans(version);
  const exchanged = tokenTelemetry({ tokens, metrics, spans, server: serverOf(baseUrl) });
  workerTelemetry(metrics, workers);
  return { metrics, exchanged };
}

/** The workers that are running, and how many have ended, by reason. */
interface WorkersLoad {
  readonly running: readonly { readonly state: string }[];
  readonly ended: Readonly<Record<string, number>>;
}

function workerTelemetry({ gauge }: MetricRegistry, workers: () => WorkersLoad): void {
  gauge(
    {
      name: 'recruiting_workers',
      help: 'Worker processes. A silent one stands still, and is killed and replaced if that lasts.',
      labelNames: ['state'],
    },
    () => {
      const { running } = workers();
      return ['starting', 'serving', 'silent'].map(
        (state) => [running.filter((worker) => worker.state === state).length, state] as const,
      );
    },
  );
  gauge(
    {
      name: 'recruiting_workers_ended_total',
      help: 'Workers that ended without being asked to: they died, or were killed because they stood still.',
      labelNames: ['reason'],
      type: 'counter',
    },
    () => Object.entries(workers().ended).map(([reason, count]) => [count, reason] as const),
  );
}

/** Attributes that name the service. */
function serverOf(baseUrl: string) {
  const { hostname, port, protocol } = new URL(baseUrl);
  return {
    'server.address': hostname,
    'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
  };
}

function reportVersion({ gauge }: MetricRegistry, version: string): void {
  gauge(
    {
      name: 'recruiting_build_info',
      help: 'Always 1. The label is the version of the gateway.',
      labelNames: ['version'],
      aggregator: 'max',
    },
    () => [[1, version]],
  );
}

function schemaTelemetry({ gauge }: MetricRegistry): Telemetry['schemaCompared'] {
  const drift = new Map<string, number>();
  gauge(
    {
      name: 'recruiting_schema_drift',
      help: 'Differences of the live schema from the snapshot when they were last compared.',
      labelNames: ['kind'],
      aggregator: 'max',
    },
    () => Array.from(drift, ([kind, count]) => [count, kind] as const),
  );
  return (differences) => {
    drift.clear();
    for (const [kind, count] of Object.entries(differences)) drift.set(kind, count);
  };
}
