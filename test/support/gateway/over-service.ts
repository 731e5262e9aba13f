import assert from 'node:assert/strict';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';
import { systemClock, type Clock } from '../../../src/clock.ts';
import type { TokenStore } from '../../../src/tokens/store.ts';
import { fullSdl, fullService } from '../../service/full.ts';
import { startService, type Service, type ServiceOptions } from '../../service/service.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { memoryStore } from './stores.ts';

export interface GatewayOverService extends TestGateway {
  readonly service: Service;
  /** The waits before each repeated request, ms. */
  readonly waits: readonly number[];
  /** Passes time, also for requests in flight. Tokens that are seconds old are treated in another way. */
  readonly age: (ms: number) => void;
}

/**
 * A gateway over a stand-in for the service of its own. Its token set was imported, and refreshed once a minute ago.
 * Retries do not wait.
 */
export async function startGatewayOverService(
  serviceOptions: ServiceOptions = {},
  options: TestGatewayOptions = {},
): Promise<GatewayOverService> {
  const waits: number[] = [];
  const { store, clock, age } = agingParts(waits);
  const service = await startService(serviceOptions);
  const started = await startGateway(service, { clock, store, ...options });
  await refreshedOnce(started.store);
  age(60_000);
  return {
    ...started,
    service,
    waits,
    age,
    [Symbol.asyncDispose]: async () => {
      await started[Symbol.asyncDispose]();
      await service.close();
    },
  };
}

/** A gateway over the service that has every kind of field. */
export async function startOverFullService(options: TestGatewayOptions = {}) {
  const { schema, sent } = fullService();
  const gateway = await startGatewayOverService({ schema }, { snapshot: fullSdl, ...options });
  return { ...gateway, sent };
}

/** Retries wait less than this, and refreshes of tokens longer. */
const LONG_MS = 15_000;

/** A store in memory, and a clock with which retries do not wait. The times of both can be set ahead. */
function agingParts(waits: number[]) {
  let ahead = 0;
  const elapsed = () => systemClock.elapsed() + ahead;
  const timers = new Set<{ readonly at: number; end(): void }>();
  const clock: Clock = {
    now: systemClock.now,
    elapsed,
    sleep: async (ms, signal) => {
      if (ms >= LONG_MS) return systemClock.sleep(ms, signal);
      signal?.throwIfAborted();
      waits.push(ms);
      await setImmediate();
    },
    timer: (ms, end) => {
      const started = { at: elapsed() + ms, end };
      timers.add(started);
      const stop = systemClock.timer(ms, end);
      return () => {
        timers.delete(started);
        stop();
      };
    },
  };
  const age = (ms: number) => {
    ahead += ms;
    for (const { at, end } of timers) if (at <= elapsed()) end();
  };
  return { store: memoryStore(() => Date.now() + ahead), clock, age };
}

/** Waits without `expect.poll`, which works only inside tests. */
async function refreshedOnce(store: TokenStore): Promise<void> {
  const start = performance.now();
  while ((await store.read()).state?.generation !== 2) {
    assert.ok(performance.now() - start < 10_000, 'The token set was not imported and refreshed.');
    await delay(2);
  }
}
