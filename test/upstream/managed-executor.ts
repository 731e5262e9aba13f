import { expect, vi } from 'vitest';
import { readConfig, type Config } from '../../src/config.ts';
import { createManagedExecutor } from '../../src/gateway.ts';
import type { ServiceExecutor } from '../../src/service/request.ts';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { impatientClock } from '../support/gateway/over-fake.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import {
  startFakeUpstream,
  type FakeUpstream,
  type FakeUpstreamOptions,
} from '../support/imitations/scripted.ts';

/** The executor by itself, with the tokens that a gateway would keep, in front of a fake upstream. */
interface ManagedExecutor extends AsyncDisposable {
  readonly execute: ServiceExecutor;
  readonly upstream: FakeUpstream;
}

/** Starts it. Its set was imported and refreshed once. Repeated requests are sent without a wait. */
export async function startManagedExecutor(
  upstreamOptions: FakeUpstreamOptions = {},
): Promise<ManagedExecutor> {
  const upstream = await startFakeUpstream(upstreamOptions);
  const config = {
    ...readConfig({}, () => ''),
    recruitingUrl: upstream.url,
    tokenLink: upstream.tokenLink,
    upstreamTimeoutMs: 1_000,
  } as Config & { recruitingUrl: string };
  const store = openSqliteStore(':memory:');
  const clock = impatientClock();
  const { log } = recordingLog();
  const executor = await createManagedExecutor({ config, store, clock, log });
  // `expect.poll` works only inside tests.
  await vi.waitFor(async () => expect((await store.read())?.generation).toBe(2), {
    interval: 2,
    timeout: 10_000,
  });
  return {
    execute: executor.execute,
    upstream,
    [Symbol.asyncDispose]: async () => {
      await executor.close();
      await store.close();
      await upstream[Symbol.asyncDispose]();
    },
  };
}
