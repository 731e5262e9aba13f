import type { TokenStanding } from '../tokens/token-standing.ts';
import { TROUBLES } from '../tokens/token-trouble.ts';
import type { Exposition } from './exposition.ts';

/**
 * How the token set stands, and how its exchanges went.
 *
 * @param tokens undefined while there are none
 * @returns what is told of each exchange: its outcome, and the seconds from the mark to the end
 */
export function tokenMetrics(
  { counter, gauge: anyGauge, histogram }: Exposition,
  tokens: () => TokenStanding | undefined,
) {
  const gauge = (name: string, help: string, value: (of: TokenStanding) => number) =>
    anyGauge({ name, help }, () => {
      const standing = tokens();
      // A number that nobody knows is no 0.
      return standing ? [[value(standing)]] : [];
    });

  gauge(
    'recruiting_access_token_seconds_left',
    'Seconds until the access token expires.',
    ({ accessSecondsLeft }) => accessSecondsLeft,
  );
  gauge(
    'recruiting_refresh_token_seconds_left',
    'Seconds until the refresh token ends.',
    ({ refreshSecondsLeft }) => refreshSecondsLeft,
  );
  gauge(
    'recruiting_token_generation',
    'Counts imports and rotations.',
    ({ generation }) => generation,
  );
  gauge(
    'recruiting_token_age_seconds',
    'Seconds since the token pair was refreshed last.',
    ({ age }) => age,
  );
  anyGauge(
    {
      name: 'recruiting_token_trouble',
      help: '1 while there is this trouble with the tokens.',
      labelNames: ['trouble'],
    },
    () => {
      const found = tokens()?.troubles ?? ['missing'];
      return TROUBLES.map((trouble) => [found.includes(trouble) ? 1 : 0, trouble] as const);
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
    help: 'Exchanges of the refresh token by this process.',
    labelNames: ['outcome'],
  });
  const duration = histogram({
    name: 'recruiting_token_exchange_seconds',
    help: 'How long exchanges took, from the mark to the saved pair.',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
  });

  return (outcome: string, seconds: number): void => {
    exchanges(1, outcome);
    duration(seconds);
  };
}
