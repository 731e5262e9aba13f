import { AsyncLocalStorage } from 'node:async_hooks';
import type { Logger } from 'pino';
import type { ExchangeTelemetry } from '../http/exchange.ts';
import { createMetrics, type Metrics, type MetricsParts } from '../metrics.ts';
import type { ReadingWatch } from '../plans/reading-watch.ts';
import type { UpstreamWatch } from '../upstream/upstream-watch.ts';
import type { WatchedCause } from './cause.ts';
import { createSpans } from './spans.ts';
import { watchReading } from './watch-reading.ts';
import { watchRequests } from './watch-requests.ts';
import { watchUpstream } from './watch-upstream.ts';

export interface WatchingParts extends MetricsParts {
  readonly log: Logger;
  /** Of the service. */
  readonly baseUrl: string;
  /** Milliseconds. */
  readonly stopwatch?: () => number;
}

/** Logs, metrics and spans, and what the stages have to be given for them. */
export interface Watching {
  /** For what is written on behalf of requests: says of which. */
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly requests: ExchangeTelemetry;
  readonly upstream: UpstreamWatch;
  readonly reading: ReadingWatch;
  readonly exchanged: (outcome: string, seconds: number) => void;
}

export function createWatching(parts: WatchingParts): Watching {
  const { stopwatch = () => performance.now() } = parts;
  const metrics = createMetrics(parts);
  const spans = createSpans(parts.version);
  const current = new AsyncLocalStorage<WatchedCause>();
  const { hostname, port, protocol } = new URL(parts.baseUrl);
  const server = {
    'server.address': hostname,
    'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
  };
  const log = namingRequests(parts.log, () => current.getStore()?.requestId);
  const watched = { ...parts, metrics, spans, stopwatch, server };

  return {
    log,
    metrics,
    upstream: watchUpstream(watched),
    reading: watchReading(watched),
    exchanged: (outcome, seconds) => {
      metrics.exchanged(outcome, seconds);
      const error = outcome === 'rotated' ? undefined : outcome;
      spans.past('token exchange', seconds, { 'http.request.method': 'POST', ...server }, error);
    },
    requests: watchRequests({ ...watched, current }),
  };
}

/** A child cannot say this by its bindings: it lives longer than any request. */
function namingRequests(log: Logger, requestId: () => string | undefined): Logger {
  const formatters = {
    log: (line: object) => {
      const id = requestId();
      return id === undefined || 'requestId' in line ? line : { requestId: id, ...line };
    },
  };
  return log.child({}, { formatters });
}
