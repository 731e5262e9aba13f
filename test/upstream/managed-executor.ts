import { readConfig, type Config } from '../../src/config.ts';
import { createManagedExecutor } from '../../src/gateway.ts';
import type { ExecutionRequest, ExecutionResult } from '@graphql-tools/utils';
import { keeperParts } from '../../src/setup/custody.ts';
import { NO_EMERGENCY } from '../../src/tokens/emergency.ts';
import { machineWith } from '../support/gateway/gateway.ts';
import { agingParts, refreshedOnce } from '../support/gateway/over-service.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { startService, type Service, type ServiceOptions } from '../service/service.ts';

/** The executor by itself, with the tokens that a gateway would keep, in front of a stand-in for the service. */
interface ManagedExecutor extends AsyncDisposable {
  readonly execute: (request: ExecutionRequest) => Promise<ExecutionResult>;
  readonly upstream: Service;
}

/** Starts it. Its set was imported, and refreshed once a minute ago. Repeated requests are sent without a wait. */
export async function startManagedExecutor(
  upstreamOptions: ServiceOptions = {},
): Promise<ManagedExecutor> {
  const upstream = await startService(upstreamOptions);
  const config = {
    ...readConfig({}, () => ''),
    recruitingUrl: upstream.url,
    tokenLink: upstream.tokenLink,
    upstreamTimeoutMs: 1_000,
  } as Config & { recruitingUrl: string };
  const { store, clock, age } = agingParts();
  const { log } = recordingLog();
  const machine = machineWith(clock);
  const tokens = keeperParts(config, { store, emergency: NO_EMERGENCY, machine, log });
  const executor = await createManagedExecutor({ config, tokens, clock, log });
  await refreshedOnce(store);
  age(60_000);
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
