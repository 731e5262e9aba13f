import type { Logger } from 'pino';
import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { CheckedConfig } from '../config/gateway-config.ts';
import {
  createGateway,
  createManagedExecutor,
  type Gateway,
  type GatewayParts,
} from '../gateway.ts';
import type { Machine } from './machine.ts';
import type { Own, UpstreamParts } from './open-upstream.ts';
import { readAdaptersFile, readSnapshotFile, readTrustedDocumentsFile } from './operator-files.ts';
import { replicaOf } from './token-store.ts';

/** What a process has before it opens anything. */
export interface Setup {
  readonly config: Config;
  /** What gateway.config.ts exports, checked; undefined: nothing is added. */
  readonly added?: CheckedConfig | undefined;
  readonly machine: Machine;
  readonly log: Logger;
  readonly own: Own;
}

/**
 * Opens a gateway with its own tokens, for a command or for the program of somebody else.
 *
 * @throws Error with a message for the operator
 */
export async function openGateway(upstream: UpstreamParts, setup: Setup): Promise<Gateway> {
  const { config, machine, own } = setup;
  const { settings, store, rescue, ledger } = upstream;
  return own(
    await createGateway({
      ...gatewayParts({ ...config, ...settings }, setup),
      store,
      rescue,
      ledger,
      replica: replicaOf(machine.owner),
    }),
  );
}

/** Opens the executor with managed tokens by itself. @throws Error with a message for the operator */
export async function openExecutor(upstream: UpstreamParts, setup: Setup) {
  const { config, machine, log, own } = setup;
  const { settings, store, rescue } = upstream;
  return own(
    await createManagedExecutor({
      config: { ...config, ...settings },
      store,
      rescue,
      replica: replicaOf(machine.owner),
      proxyFor: machine.proxyFor,
      clock: systemClock,
      log,
    }),
  );
}

/** Reads the files that the settings name. @throws OperatorMistake */
export function gatewayParts(
  config: Config & { readonly recruitingUrl: string },
  { config: { recruitingUrl: service }, added, machine, log }: Omit<Setup, 'own'>,
): GatewayParts {
  return {
    config,
    snapshot: readSnapshotFile(config.schemaPath, machine),
    overrides: readAdaptersFile(config.schemaPath, machine),
    trustedDocuments: readTrustedDocumentsFile(config.trustedDocuments, machine),
    plugins: added?.plugins,
    additions: added,
    knownId: service === undefined ? FIRST_PERSON_OF_SANDBOX : undefined,
    proxyFor: machine.proxyFor,
    clock: systemClock,
    log,
  };
}

const FIRST_PERSON_OF_SANDBOX = '8a57f600-1179-4434-a6be-16e91e375648';
