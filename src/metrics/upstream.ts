import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface UpstreamLoad {
  readonly inFlight: number;
  readonly waiting: Readonly<Record<'interactive' | 'drain', number>>;
}

/** What goes out to the service, beside the exchanges of tokens. */
export function upstreamMetrics(registry: Registry, load: () => UpstreamLoad) {
  const registers = [registry];
  const requests = new Counter({
    name: 'recruiting_upstream_requests_total',
    help: 'Requests sent to the service, each attempt, by outcome: ok, graphql_error, left, or a code.',
    labelNames: ['outcome'],
    registers,
  });
  const retries = new Counter({
    name: 'recruiting_upstream_retries_total',
    help: 'Requests that were sent again, by the code of the failure before.',
    labelNames: ['code'],
    registers,
  });
  const duration = new Histogram({
    name: 'recruiting_upstream_request_duration_seconds',
    help: 'From the sending of a request to the end of its answer, each attempt; without waiting for its turn.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  const inFlight: Gauge = new Gauge({
    name: 'recruiting_upstream_requests_in_flight',
    help: 'Requests that have their turn, UPSTREAM_CONCURRENCY at most.',
    registers,
    collect: () => inFlight.set(load().inFlight),
  });
  const waiting: Gauge<'priority'> = new Gauge({
    name: 'recruiting_upstream_requests_waiting',
    help: 'Requests that wait for their turn.',
    labelNames: ['priority'],
    registers,
    collect: () => {
      const { interactive, drain } = load().waiting;
      waiting.set({ priority: 'interactive' }, interactive);
      waiting.set({ priority: 'drain' }, drain);
    },
  });
  const breaker = new Gauge({
    name: 'recruiting_upstream_breaker_open',
    help: '1 while the service is taken for down and spared: all but a request now and then is refused.',
    registers,
  });
  breaker.set(0);
  return {
    breaker: (state: string) => breaker.set(state === 'closed' ? 0 : 1),
    ended: (outcome: string, seconds: number) => {
      requests.inc({ outcome });
      duration.observe(seconds);
    },
    again: (code: string) => retries.inc({ code }),
  };
}
