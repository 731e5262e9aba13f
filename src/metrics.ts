import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { TokenStanding } from './tokens/token-standing.ts';
import { TROUBLES } from './tokens/token-trouble.ts';

/** What Prometheus reads of one gateway. Names and labels hold nothing personal and nothing secret. */
export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
  /** @param seconds from the mark to the end */
  exchanged(outcome: string, seconds: number): void;
  /** @param drift how many differences of each kind the live schema has from the snapshot */
  schemaLookedAt(drift: Readonly<Record<string, number>>): void;
}

/** @param tokens undefined while there are none */
export function createMetrics(version: string, tokens: () => TokenStanding | undefined): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const gauge = (name: string, help: string, value: (of: TokenStanding) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        const standing = tokens();
        if (standing) this.set(value(standing));
        // A number that nobody knows is no 0.
        else this.remove();
      },
    });

  new Gauge({
    name: 'recruiting_build_info',
    help: 'Always 1; the version is its label.',
    labelNames: ['version'],
    registers,
  }).set({ version }, 1);
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
  const troubles: Gauge<'trouble'> = new Gauge({
    name: 'recruiting_token_trouble',
    help: '1 while there is this trouble with the tokens.',
    labelNames: ['trouble'],
    registers,
    collect: () => {
      const found = tokens()?.troubles ?? ['missing'];
      for (const trouble of TROUBLES) troubles.set({ trouble }, found.includes(trouble) ? 1 : 0);
    },
  });
  const exchanges = new Counter({
    name: 'recruiting_token_exchanges_total',
    help: 'Exchanges of the refresh token by this process.',
    labelNames: ['outcome'],
    registers,
  });
  const duration = new Histogram({
    name: 'recruiting_token_exchange_seconds',
    help: 'How long exchanges took, from the mark to the saved pair.',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
    registers,
  });
  const drift = new Gauge({
    name: 'recruiting_schema_drift',
    help: 'Differences of the live schema from the snapshot, at the last look.',
    labelNames: ['kind'],
    registers,
  });

  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    exchanged: (outcome, seconds) => {
      exchanges.inc({ outcome });
      duration.observe(seconds);
    },
    schemaLookedAt: (found) => {
      for (const [kind, count] of Object.entries(found)) drift.set({ kind }, count);
    },
  };
}
