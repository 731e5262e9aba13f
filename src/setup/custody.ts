import { dirname, resolve } from 'node:path';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { Config } from '../config.ts';
import type { StoreAddress } from '../config/values.ts';
import { emergencyIn, type Emergency } from '../tokens/emergency.ts';
import type { HolderParts } from '../tokens/holder.ts';
import { openPostgresStore } from '../tokens/postgres.ts';
import { createSealer } from '../tokens/seal.ts';
import { tokenService, type RecruitingTokens } from '../tokens/service.ts';
import { openSqliteStore } from '../tokens/sqlite.ts';
import type { TokenStore } from '../tokens/store.ts';
import type { Machine } from './machine.ts';
import { GATEWAY_WORDING, storeProblem } from './wording.ts';

type StoreSettings = Pick<Config, 'tokenStore' | 'tokenStoreKeys' | 'tokenRescueDir'>;

/**
 * Opens a token store. Its description names the file by its absolute path, for people in any working directory.
 *
 * @throws Error for the operator
 */
export function openTokenStore(
  address: StoreAddress,
  { tokenStoreKeys }: Pick<StoreSettings, 'tokenStoreKeys'>,
  { readOnly = false }: { readonly readOnly?: boolean } = {},
): TokenStore {
  const sealer = createSealer(tokenStoreKeys);
  if (address.kind === 'postgres') return openPostgresStore(address.url, sealer);
  const path = address.path === ':memory:' ? address.path : resolve(address.path);
  try {
    return openSqliteStore(path, sealer, { readOnly });
  } catch (error) {
    throw storeProblem(error, { description: `sqlite:${path}` });
  }
}

/** Where a pair waits that is not in the store yet: always a folder of this machine. */
export function emergencyFor(settings: StoreSettings): Emergency {
  const { tokenStore, tokenStoreKeys, tokenRescueDir } = settings;
  const beside = tokenStore.kind === 'sqlite' ? dirname(tokenStore.path) : 'data/rescue';
  return emergencyIn(resolve(tokenRescueDir ?? beside), createSealer(tokenStoreKeys));
}

/** What a process needs to hold the token set of a service. */
export function tokenParts(
  config: StoreSettings & Pick<Config, 'agent'>,
  parts: {
    readonly store: TokenStore;
    readonly serviceUrl: string;
    /** Opens the connections: see `proxyAgent`. */
    readonly http: Dispatcher;
    readonly machine: Pick<Machine, 'owner' | 'clock'>;
    readonly log: Logger;
  },
): HolderParts & { readonly service: RecruitingTokens } {
  const { store, serviceUrl, http, log } = parts;
  const { owner, clock } = parts.machine;
  return {
    store,
    service: tokenService({ baseUrl: serviceUrl, agent: config.agent, http }),
    emergency: emergencyFor(config),
    serviceUrl,
    by: `${owner.host}/${owner.pid}`,
    clock,
    log,
    wording: GATEWAY_WORDING,
  };
}
