import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import process from 'node:process';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { Config } from '../config.ts';
import type { StoreAddress } from '../config/values.ts';
import { emergencyIn, type Emergency } from '../tokens/emergency.ts';
import { storeError } from '../tokens/errors.ts';
import type { HolderParts } from '../tokens/holder.ts';
import type { KeeperParts } from '../tokens/keeper.ts';
import { readLink } from '../tokens/link.ts';
import { openPostgresStore } from '../tokens/postgres.ts';
import { createSealer } from '../tokens/seal.ts';
import { proxyAgent, tokenService, type RecruitingTokens } from '../tokens/service.ts';
import { openSqliteStore } from '../tokens/sqlite.ts';
import type { TokenStore } from '../tokens/store.ts';
import type { Machine } from './machine.ts';
import { STEPS } from './wording.ts';

type StoreSettings = Pick<Config, 'tokenStore' | 'tokenStoreKeys' | 'tokenRescueDir'>;

/**
 * Opens a token store. Its description names the file by its absolute path, for people in any working directory.
 *
 * @throws Error for the operator
 */
export function openTokenStore(
  address: StoreAddress,
  { tokenStoreKeys }: Pick<StoreSettings, 'tokenStoreKeys'>,
): TokenStore {
  const sealer = createSealer(tokenStoreKeys);
  if (address.kind === 'postgres') return openPostgresStore(address.url, sealer);
  const path = resolve(address.path);
  try {
    return openSqliteStore(path, sealer);
  } catch (error) {
    throw storeError(error, { description: `sqlite:${path}` });
  }
}

/** Where a pair waits that is not in the store yet: always a folder of this machine. */
export function emergencyFor(settings: StoreSettings): Emergency {
  const { tokenStore, tokenStoreKeys, tokenRescueDir } = settings;
  const beside = tokenStore.kind === 'sqlite' ? dirname(tokenStore.path) : 'data/rescue';
  return emergencyIn(resolve(tokenRescueDir ?? beside), createSealer(tokenStoreKeys));
}

/** Where the token set of a service lies, and who holds it. */
interface Custody {
  readonly store: TokenStore;
  readonly emergency: Emergency;
  readonly serviceUrl: string;
  readonly machine: Pick<Machine, 'clock' | 'env'>;
  readonly log: Logger;
}

/** What a process needs to hold the token set of a service. `http` opens connections, for other requests too. */
export function holderParts(
  { agent }: Pick<Config, 'agent'>,
  { store, emergency, serviceUrl, machine, log }: Custody,
): HolderParts & { readonly service: RecruitingTokens; readonly http: Dispatcher } {
  const http = proxyAgent(machine.env);
  return {
    store,
    service: tokenService({ baseUrl: serviceUrl, agent, http }),
    emergency,
    serviceUrl,
    by: `${hostname()}/${process.pid}`,
    clock: machine.clock,
    log,
    steps: STEPS,
    http,
  };
}

/** The same for a gateway, which keeps the set alive and imports the token link of its settings. */
export function keeperParts(
  config: Pick<Config, 'agent' | 'tokenLink'>,
  custody: Custody,
): KeeperParts {
  const { agent, tokenLink: link } = config;
  const parts = holderParts(config, custody);
  const { http } = parts;
  return {
    ...parts,
    meansExpired: (detail) => detail === 'token_expired',
    link: link === undefined ? undefined : { read: () => readLink(link, { agent, http }) },
  };
}
