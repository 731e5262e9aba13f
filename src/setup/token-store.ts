import { dirname } from 'node:path';
import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { StoreAddress } from '../config/values.ts';
import type { Owner, RescueFolder } from '../tokens/store/sealed-file.ts';
import {
  describePostgres,
  openPostgresStore,
  type PostgresStore,
} from '../tokens/store/postgres/postgres-store.ts';
import { createSealer, SealError } from '../tokens/store/seal.ts';
import { openSqliteStore } from '../tokens/store/sqlite/sqlite-store.ts';
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
    throw new Error(
      `The token store cannot be opened (${address.path}): ${(error as Error).message}. It was left as it is. ${adviceOn(error)}`,
      { cause: error },
    );
  }
}

function adviceOn(error: unknown): string {
  if (error instanceof SealError) {
    return (
      'Set TOKEN_STORE_KEY as it is set for the gateway on this store. While the key is being changed, ' +
      'that is both keys, the new one first.'
    );
  }
  const { message } = error as Error;
  if (/damaged|malformed|not a database/i.test(message)) {
    return (
      'Check that TOKEN_STORE names the token store. If it does, the store is damaged: move the file away, and run ' +
      '`tokens recover`, which saves a pair that waits in a rescue file into a new store. If it finds none, have an ' +
      'administrator make a new token, and run `tokens import <link>`.'
    );
  }
  return 'Check TOKEN_STORE, and that this user may read and write there.';
}

/** Names a store for people, without credentials. */
export function describeStore(address: StoreAddress): string {
  return address.kind === 'sqlite' ? `sqlite:${address.path}` : describePostgres(address.url);
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
