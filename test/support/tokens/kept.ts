import { expect, onTestFinished } from 'vitest';
import type { Config } from '../../../src/config.ts';
import { startService, type Service, type ServiceOptions } from '../../service/service.ts';
import type { Rescue } from '../../../src/tokens/store/rescue.ts';
import { startGateway, type TestGateway } from '../gateway/gateway.ts';
import { secretsIn } from '../gateway/written.ts';
import { ManualClock } from '../random/manual-clock.ts';
import { type WatchedStore, watchStore } from './tokens.ts';

interface KeptOptions {
  config?: Partial<Config>;
  clock?: ManualClock;
  store?: WatchedStore;
  rescue?: Rescue;
}

export interface Kept extends TestGateway {
  readonly clock: ManualClock;
  readonly store: WatchedStore;
  /** Ends this gateway before the test ends, as a restart does. */
  stop(): Promise<void>;
}

/**
 * A gateway whose clock and store the test controls. At the end of the test its log and its answers must contain
 * nothing secret.
 */
export async function startKept(
  upstream: { url: string; tokenLink?: string; secrets?: readonly string[] },
  { config = {}, clock = new ManualClock(), store = watchStore(), rescue }: KeptOptions = {},
): Promise<Kept> {
  store.useClock(clock);
  const started = await startGateway(upstream, { config, clock, store, ...(rescue && { rescue }) });
  const answers: unknown[] = [];
  let stopping: Promise<void> | undefined;
  const stop = () => (stopping ??= started.gateway.close());
  onTestFinished(async () => {
    await stop();
    const history = await store.history(100);
    const metrics = await started.gateway.metrics.text();
    const written = JSON.stringify([started.logged, answers, history, metrics]);
    for (const secret of [...store.secrets, ...(upstream.secrets ?? [])]) {
      expect(written).not.toContain(secret);
    }
    expect(secretsIn([written])).toEqual([]);
    const linkPath = upstream.tokenLink && new URL(upstream.tokenLink).pathname;
    if (linkPath) expect(written).not.toContain(linkPath);
  });
  return {
    ...started,
    clock,
    store,
    stop,
    ask: async (...asked) => {
      const answer = await started.ask(...asked);
      answers.push(answer);
      return answer as never;
    },
  };
}

/** The service's time is the gateway's, plus `ahead`. */
export interface KeptOverSandbox extends Kept {
  readonly sandbox: Service;
  readonly service: { ahead: number };
  /** The bearer of the latest request. */
  lastBearer(): string;
}

export async function startKeptOverSandbox(
  options: ServiceOptions & KeptOptions = {},
): Promise<KeptOverSandbox> {
  const clock = options.clock ?? new ManualClock();
  const start = clock.now() - clock.elapsed();
  const service = { ahead: 0 };
  const now = () => start + clock.elapsed() + service.ahead;
  const sandbox = await startService({ now, persons: 3, ...options });
  onTestFinished(() => sandbox.close());
  const kept = await startKept(sandbox, { ...options, clock });
  const lastBearer = () => String(sandbox.stats.lastHeaders?.authorization).replace(/^Bearer /, '');
  return { ...kept, sandbox, service, lastBearer };
}
