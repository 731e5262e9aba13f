import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { CheckedConfig } from '../config/gateway-config.ts';
import { createGateway, createManagedExecutor, type Gateway } from '../gateway.ts';
import { NO_EMERGENCY } from '../tokens/emergency.ts';
import { createSealer } from '../tokens/seal.ts';
import { openSqliteStore } from '../tokens/sqlite.ts';
import { keeperParts, openCustody, type OpenCustody } from './custody.ts';
import { readAdaptersFile, readSnapshotFile, readTrustedDocumentsFile } from './operator-files.ts';

/** Everything that is needed to open a gateway. */
export interface Setup {
  readonly config: Config;
  /** What gateway.config.ts exports, checked; undefined: nothing is added. */
  readonly added?: CheckedConfig | undefined;
  /** The variables that name the proxies. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Gets what is opened, to close it. */
  readonly parts: AsyncDisposableStack;
}

/**
 * Opens a gateway that manages its tokens itself, for a command or for another program.
 *
 * @throws Error with a message for the operator
 */
export async function openGateway(setup: Setup): Promise<Gateway> {
  const { config, added, parts } = setup;
  const gateway = await createGateway({
    ...(await managedParts(setup)),
    snapshot: readSnapshotFile(config.schemaPath),
    overrides: readAdaptersFile(config.schemaPath),
    trustedDocuments: readTrustedDocumentsFile(config.trustedDocuments),
    plugins: added?.plugins,
    additions: added,
    isSandbox: config.recruitingUrl === undefined,
  });
  return parts.adopt(gateway, () => gateway.close());
}

/** Opens the executor with managed tokens by itself. @throws Error with a message for the operator */
export async function openExecutor(setup: Setup) {
  const executor = await createManagedExecutor(await managedParts(setup));
  return setup.parts.adopt(executor, () => executor.close());
}

async function managedParts({ config: configured, env, clock, log, parts }: Setup) {
  const managed = (serviceUrl: string, custody: OpenCustody, tokenLink: string | undefined) => {
    const config = { ...configured, recruitingUrl: serviceUrl, tokenLink };
    const tokens = keeperParts(config, { ...custody, serviceUrl, env, clock, log });
    return { config, tokens, proxies: env, clock, log };
  };
  const { recruitingUrl, tokenLink } = configured;
  if (recruitingUrl !== undefined) {
    return managed(recruitingUrl, openCustody(configured), tokenLink);
  }
  // Loaded only here: a gateway in front of a service does not need it.
  const { startSandbox } = await import('../../sandbox/sandbox.ts');
  const sandbox = await startSandbox();
  parts.adopt(sandbox, () => sandbox.close());
  // In memory, so that its tokens cannot be mixed with real ones.
  const store = openSqliteStore(':memory:', createSealer([]));
  return managed(sandbox.url, { store, emergency: NO_EMERGENCY }, sandbox.tokenLink);
}
