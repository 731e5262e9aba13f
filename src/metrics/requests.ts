import type { Exposition } from './exposition.ts';

export interface EndedRequest {
  /** The name of a trusted operation; empty for any other: callers do not decide how many series there are. */
  readonly operation: string;
  readonly operationType: string | undefined;
  /** Of a closed list. */
  readonly outcome: string;
}

/** What callers asked for. Probes are not counted. */
export function requestMetrics({ counter, histogram }: Exposition) {
  const requests = counter({
    name: 'recruiting_requests_total',
    help: 'Requests of callers, by the name of the trusted operation and the code of the first error, OK without one.',
    labelNames: ['operation', 'code'],
  });
  const duration = histogram({
    name: 'recruiting_request_duration_seconds',
    help: 'From the arrival of a request to the last byte of its answer.',
    labelNames: ['type'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  });
  return {
    ended: ({ operation, operationType = 'none', outcome }: EndedRequest, seconds: number) => {
      requests(1, operation, outcome);
      duration(seconds, operationType);
    },
  };
}
