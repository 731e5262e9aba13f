import type { Exposition } from './exposition.ts';

export interface UpstreamLoad {
  readonly inFlight: number;
  readonly waiting: Readonly<Record<'interactive' | 'drain', number>>;
}

/** What goes out to the service, beside the exchanges of tokens. */
export function upstreamMetrics(
  { counter, gauge, histogram }: Exposition,
  load: () => UpstreamLoad,
) {
  const requests = counter({
    name: 'recruiting_upstream_requests_total',
    help: 'Requests sent to the service, each attempt, by outcome: ok, graphql_error, left, or a code.',
    labelNames: ['outcome'],
  });
  const answers = counter({
    name: 'recruiting_upstream_answers_total',
    help: 'Answers of the service that are GraphQL, by how they were read: scanned as bytes, or general, value by value.',
    labelNames: ['read'],
  });
  const retries = counter({
    name: 'recruiting_upstream_retries_total',
    help: 'Requests that were sent again, by the code of the failure before.',
    labelNames: ['code'],
  });
  const duration = histogram({
    name: 'recruiting_upstream_request_duration_seconds',
    help: 'From the sending of a request to the end of its answer, each attempt; without waiting for its turn.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  });
  gauge(
    {
      name: 'recruiting_upstream_requests_in_flight',
      help: 'Requests that have their turn, UPSTREAM_CONCURRENCY at most.',
    },
    () => [[load().inFlight]],
  );
  gauge(
    {
      name: 'recruiting_upstream_requests_waiting',
      help: 'Requests that wait for their turn.',
      labelNames: ['priority'],
    },
    () => {
      const { interactive, drain } = load().waiting;
      return [
        [interactive, 'interactive'],
        [drain, 'drain'],
      ];
    },
  );
  let isOpen = false;
  gauge(
    {
      name: 'recruiting_upstream_breaker_open',
      help: '1 while the service is taken for down and spared: all but a request now and then is refused.',
    },
    () => [[isOpen ? 1 : 0]],
  );
  return {
    breaker: (state: string) => void (isOpen = state !== 'closed'),
    ended: (outcome: string, seconds: number) => {
      requests(1, outcome);
      duration(seconds);
    },
    read: (how: string) => answers(1, how),
    again: (code: string) => retries(1, code),
  };
}
