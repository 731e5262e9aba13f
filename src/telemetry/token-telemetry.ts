import type { Attributes } from '@opentelemetry/api';
import { TROUBLES, type TokenHealth } from '../tokens/token-health.ts';
import type { MetricRegistry } from './metrics.ts';
import { REQUEST_ID, type Spans } from './spans.ts';

interface TokenTelemetryParts {
  readonly metrics: MetricRegistry;
  readonly spans: Spans;
  /** Returns undefined while there are no tokens. */
  readonly tokens: () => TokenHealth | undefined;
  /** Attributes that name the service. */
  readonly server: Attributes;
}

/**
 * The state of the token set, and the exchanges of its refresh token.
 *
 * @returns a function that reports an exchange: its outcome, the seconds from the claim to the saved pair, and the
 * service's own id of a request that failed
 */
export function tokenTelemetry({ metrics, spans, tokens, server }: TokenTelemetryParts) {
  const { counter, gauge: anyGauge, histogram } = metrics;
  const gauge = (name: string, help: string, value: (of: TokenHealth) => number) =>
    anyGauge({ name, help }, () => {
      const health = tokens();
      // An unknown number is not 0.
      return health ? [[value(health)]] : [];
    });

  gauge(
    'recruiting_access_token_seconds_left',
    'Seconds until the access token expires.',
    ({ accessSecondsLeft }) => accessSecondsLeft,
  );
  gauge(
    'recruiting_refresh_token_seconds_left',
    'Seconds until the refresh token expires.',
    ({ refreshSecondsLeft }) => refreshSecondsLeft,
  );
  gauge(
    'recruiting_token_generation',
    'Number of imports and refreshes of the token pair so far.',
    ({ generation }) => generation,
  );
  gauge(
    'recruiting_token_age_seconds',
    'Seconds since the token pair was last refreshed.',
    ({ age }) => age,
  );
  anyGauge(
    {
      name: 'recruiting_token_trouble',
      help: '1 while the tokens have this trouble.',
      labelNames: ['trouble'],
    },
    () => {
      const troubles = tokens()?.troubles ?? ['missing'];
      return TROUBLES.map((trouble) => [troubles.includes(trouble) ? 1 : 0, trouble] as const);
    },
  );
  anyGauge(
    {
      name: 'recruiting_token_store_losses_total',
      help: 'How often the token store was found to be replaced, gone, or sealed with another key.',
      type: 'counter',
    },
    () => [[tokens()?.storeLosses ?? 0]],
  );
  const exchanges = counter({
    name: 'recruiting_token_exchanges_total',
    help: 'Exchanges of the refresh token by this process, by outcome.',
    labelNames: ['outcome'],
  });
  const duration = histogram({
    name: 'recruiting_token_exchange_seconds',
    help: 'Duration of exchanges, from the claim to the saved pair.',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
  });

  const attributes = { 'http.request.method': 'POST', ...server };
  return (outcome: string, seconds: number, requestId?: string): void => {
    exchanges(1, outcome);
    duration(seconds);
    const error = outcome === 'rotated' ? undefined : outcome;
    const id = requestId !== undefined && { [REQUEST_ID]: [requestId] };
    spans.past('token exchange', seconds, { ...attributes, ...id }, error);
  };
}
