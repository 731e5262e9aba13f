import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { CheckedConfig } from '../config/gateway-config.ts';
import { createGateway, createManagedExecutor, type Gateway } from '../gateway.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { NO_EMERGENCY, type Emergency } from '../tokens/emergency.ts';
import { createSealer } from '../tokens/seal.ts';
import { openSqliteStore } from '../tokens/sqlite.ts';
import type { TokenStore } from '../tokens/store.ts';
import { emergencyFor, keeperParts, openTokenStore } from './custody.ts';
import type { Machine } from './machine.ts';
import { readAdaptersFile, readSnapshotFile, readTrustedDocumentsFile } from './operator-files.ts';

/** Everything that is needed to open a gateway. */
export interface Setup {
  readonly config: Config;
  /** What gateway.config.ts exports, checked; undefined: nothing is added. */
  readonly added?: CheckedConfig | undefined;
  readonly machine: Machine;
  readonly log: Logger;
  /** Whether others send requests. Default: true. */
  readonly hasCallers?: boolean;
  readonly closeAtEnd: CloseAtEnd;
}

/** Has a part closed when the gateway is, and returns it. */
export type CloseAtEnd = <T extends { close(): Promise<void> }>(part: T) => T;

/** The connection of a gateway to the service, or to a sandbox in its place. */
interface ServiceAccess {
  readonly settings: { readonly recruitingUrl: string; readonly tokenLink: string | undefined };
  readonly store: TokenStore;
  readonly emergency: Emergency;
}

/** Opens the token store of the configured service, or starts a sandbox. */
export async function openAccess({ config, closeAtEnd }: Setup): Promise<ServiceAccess> {
  const { recruitingUrl, tokenLink } = config;
  if (recruitingUrl === undefined) return sandboxInside(closeAtEnd);
  const store = openTokenStore(config.tokenStore, config);
  return { settings: { recruitingUrl, tokenLink }, store, emergency: emergencyFor(config) };
}

/** Keeps the tokens of the sandbox in memory, so that they cannot be mixed with real ones. */
async function sandboxInside(closeAtEnd: CloseAtEnd): Promise<ServiceAccess> {
  // Loaded only here: a gateway in front of a service does not need it.
  const { startSandbox } = await import('../../sandbox/sandbox.ts');
  const { url, tokenLink } = closeAtEnd<Sandbox>(await startSandbox());
  return {
    settings: { recruitingUrl: url, tokenLink },
    store: openSqliteStore(':memory:', createSealer([])),
    emergency: NO_EMERGENCY,
  };
}

/**
 * Opens a gateway that manages its tokens itself, for a command or for another program.
 *
 * @throws Error with a message for the operator
 */
export async function openGateway(access: ServiceAccess, setup: Setup): Promise<Gateway> {
  const { config, added, hasCallers, closeAtEnd } = setup;
  return closeAtEnd(
    await createGateway({
      ...managedParts(access, setup),
      snapshot: readSnapshotFile(config.schemaPath),
      overrides: readAdaptersFile(config.schemaPath),
      trustedDocuments: readTrustedDocumentsFile(config.trustedDocuments),
      plugins: added?.plugins,
      additions: added,
      isSandbox: config.recruitingUrl === undefined,
      hasCallers,
    }),
  );
}

/** Opens the executor with managed tokens by itself. @throws Error with a message for the operator */
export async function openExecutor(access: ServiceAccess, setup: Setup) {
  return setup.closeAtEnd(await createManagedExecutor(managedParts(access, setup)));
}

function managedParts(
  { settings, store, emergency }: ServiceAccess,
  { config: configured, machine, log }: Setup,
) {
  const config = { ...configured, ...settings };
  const serviceUrl = settings.recruitingUrl;
  const tokens = keeperParts(config, { store, emergency, serviceUrl, machine, log });
  return { config, tokens, proxies: machine.env, clock: machine.clock, log };
}
