import { dirname, resolve } from 'node:path';
import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { StoreAddress } from '../config/values.ts';
import type { Owner, RescueFolder } from '../tokens/store/sealed-file.ts';
import {
  describePostgres,
  openPostgresStore,
  type PostgresStore,
} from '../tokens/store/postgres/postgres-store.ts';
import { createSealer } from '../tokens/store/seal.ts';
import { openSqliteStore } from '../tokens/store/sqlite/sqlite-store.ts';
import { adviceOn, ownerAdvice } from '../tokens/store/store-advice.ts';
import type { TokenStore } from '../tokens/store/token-store.ts';

type StoreSettings = Pick<Config, 'tokenStore' | 'tokenStoreKeys' | 'tokenRescueDir'>;

/** @throws Error with a message for the operator */
export function openStore(
  address: StoreAddress,
  { tokenStoreKeys }: Pick<StoreSettings, 'tokenStoreKeys'>,
  { readOnly = false }: { readOnly?: boolean } = {},
): TokenStore & Partial<PostgresStore> {
  const sealer = createSealer(tokenStoreKeys);
  if (address.kind === 'postgres') {
    return openPostgresStore(address.url, { sealer, clock: systemClock, readOnly });
  }
  try {
    return openSqliteStore(address.path, { sealer, readOnly });
  } catch (error) {
    const message = `The token store cannot be opened (${resolve(address.path)}): ${(error as Error).message}. It was left as it is. ${adviceOn(error, true)}${ownerAdvice(error, address.path)}`;
    throw new Error(message, { cause: error });
  }
}

/** Names a store for people, without credentials. */
export function describeStore(address: StoreAddress): string {
  return address.kind === 'sqlite' ? `sqlite:${address.path}` : describePostgres(address.url);
}

/** Names a store for people in any working directory, without credentials. */
export function placeOfStore(address: StoreAddress): string {
  return describeStore(
    address.kind === 'sqlite' ? { ...address, path: resolve(address.path) } : address,
  );
}

/** The folder for pairs that cannot be saved to the store: always one of this machine. */
export function rescueFolder(settings: StoreSettings, owner: Owner): RescueFolder {
  const { tokenStore, tokenStoreKeys, tokenRescueDir } = settings;
  return {
    directory:
      tokenRescueDir ?? (tokenStore.kind === 'sqlite' ? dirname(tokenStore.path) : RESCUE_FOLDER),
    sealer: createSealer(tokenStoreKeys),
    owner,
  };
}

const RESCUE_FOLDER = 'data/rescue';

/** Names this process in the history of the tokens. */
export function replicaOf({ host, pid }: Owner): string {
  return `${host}/${pid}`;
}
