import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import process from 'node:process';
import type { Config } from '../config.ts';
import type { StoreAddress } from '../config/values.ts';
import { emergencyIn } from '../tokens/emergency.ts';
import type { Steps } from '../tokens/health.ts';
import type { TokenParts } from '../tokens/holder.ts';
import { openPostgresStore } from '../tokens/postgres.ts';
import { createSealer } from '../tokens/seal.ts';
import { proxyAgent, readLink, tokenService } from '../tokens/service.ts';
import { openSqliteStore } from '../tokens/sqlite.ts';
import type { TokenStore } from '../tokens/store.ts';

/** Opens a token store. Its description names the file by its absolute path, for people in any working directory. */
export function openTokenStore(address: StoreAddress, keys: readonly Uint8Array[]): TokenStore {
  const sealer = createSealer(keys);
  if (address.kind === 'postgres') return openPostgresStore(address.url, sealer);
  return openSqliteStore(resolve(address.path), sealer);
}

/** Where the token set lies, and where a pair waits that is not there yet: always a folder of this machine. */
export type OpenCustody = Pick<TokenParts, 'store' | 'emergency'>;

export function openCustody({
  tokenStore,
  tokenStoreKeys,
  tokenRescueDir,
}: Pick<Config, 'tokenStore' | 'tokenStoreKeys' | 'tokenRescueDir'>): OpenCustody {
  const beside = tokenStore.kind === 'sqlite' ? dirname(tokenStore.path) : 'data/rescue';
  return {
    store: openTokenStore(tokenStore, tokenStoreKeys),
    emergency: emergencyIn(resolve(tokenRescueDir ?? beside), createSealer(tokenStoreKeys)),
  };
}

/** Who holds the token set of a service. */
interface Custody extends OpenCustody, Pick<TokenParts, 'serviceUrl' | 'clock' | 'log'> {
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * What a process needs to hold the token set of a service, to keep it alive, and to import the token link of its
 * settings. `http` opens connections, for other requests too.
 */
export function keeperParts(
  { agent, tokenLink: link }: Pick<Config, 'agent' | 'tokenLink'>,
  { env, ...custody }: Custody,
) {
  const http = proxyAgent(env);
  return {
    ...custody,
    http,
    service: tokenService({ baseUrl: custody.serviceUrl, agent, http }),
    by: `${hostname()}/${process.pid}`,
    steps: STEPS,
    meansExpired: (detail: string) => detail === 'token_expired',
    link: link === undefined ? undefined : { read: () => readLink(link, { agent, http }) },
  };
}

const NEW_TOKEN =
  'have an administrator make a new token in the personal account of the recruiting service, and run `tokens import <link>';

/** What the operator of a gateway can do: its settings, its commands, and the personal account of the service. */
export const STEPS: Steps = {
  missing: `If TOKEN_STORE names the store that you mean, ${NEW_TOKEN}\`.`,
  moved: 'Set TOKEN_STORE to that one for every gateway, and restart it.',
  lost:
    `If \`tokens recover\` finds no pair that arrived and was not saved, ${NEW_TOKEN}\`. Never restore a backup: its refresh token ` +
    'is spent.',
  uncertain:
    'A running gateway sends the refresh token once more in the last minutes of the access token, or right away if it has ' +
    'expired. Run `tokens recover` to do that now.',
  unsaved:
    'Repair the disk or the database before you stop that process: it saves the pair by itself. `tokens recover` and the next ' +
    'start save what is in a file.',
  late: 'Run `tokens refresh`, which says what prevents it.',
  unauthorized: `Have the account checked; if it is in order, ${NEW_TOKEN} --replace\`.`,
  ending: 'Start a gateway, or run `tokens refresh` and read its output.',
};
