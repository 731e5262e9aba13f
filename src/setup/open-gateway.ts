import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { CheckedConfig } from '../config/gateway-config.ts';
import { createGateway, createManagedExecutor, type Gateway } from '../gateway.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { NO_EMERGENCY } from '../tokens/emergency.ts';
import { createSealer } from '../tokens/seal.ts';
import { openSqliteStore } from '../tokens/sqlite.ts';
import { emergencyFor, keeperParts, openTokenStore } from './custody.ts';
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
  readonly closeAtEnd: CloseAtEnd;
}

/** Has a part closed when the gateway is, and returns it. */
export type CloseAtEnd = <T extends { close(): Promise<void> }>(part: T) => T;

/**
 * Opens a gateway that manages its tokens itself, for a command or for another program.
 *
 * @throws Error with a message for the operator
 */
export async function openGateway(setup: Setup): Promise<Gateway> {
  const { config, added, closeAtEnd } = setup;
  return closeAtEnd(
    await createGateway({
      ...(await managedParts(setup)),
      snapshot: readSnapshotFile(config.schemaPath),
      overrides: readAdaptersFile(config.schemaPath),
      trustedDocuments: readTrustedDocumentsFile(config.trustedDocuments),
      plugins: added?.plugins,
      additions: added,
      isSandbox: config.recruitingUrl === undefined,
    }),
  );
}

/** Opens the executor with managed tokens by itself. @throws Error with a message for the operator */
export async function openExecutor(setup: Setup) {
  return setup.closeAtEnd(await createManagedExecutor(await managedParts(setup)));
}

async function managedParts({ config: configured, env, clock, log, closeAtEnd }: Setup) {
  const { recruitingUrl, tokenLink } = configured;
  const access =
    recruitingUrl === undefined
      ? await sandboxInside(closeAtEnd)
      : {
          settings: { recruitingUrl, tokenLink },
          store: openTokenStore(configured.tokenStore, configured.tokenStoreKeys),
          emergency: emergencyFor(configured),
        };
  const { settings, store, emergency } = access;
  const config = { ...configured, ...settings };
  const serviceUrl = settings.recruitingUrl;
  const tokens = keeperParts(config, { store, emergency, serviceUrl, env, clock, log });
  return { config, tokens, proxies: env, clock, log };
}

/** Starts a sandbox, whose tokens are kept in memory, so that they cannot be mixed with real ones. */
async function sandboxInside(closeAtEnd: CloseAtEnd) {
  // Loaded only here: a gateway in front of a service does not need it.
  const { startSandbox } = await import('../../sandbox/sandbox.ts');
  const { url, tokenLink } = closeAtEnd<Sandbox>(await startSandbox());
  return {
    settings: { recruitingUrl: url, tokenLink },
    store: openSqliteStore(':memory:', createSealer([])),
    emergency: NO_EMERGENCY,
  };
}
