import { dirname } from 'node:path';
import type { Config, StoreAddress } from '../config.ts';
import type { Owner, RescueFolder } from '../tokens/rescue-file.ts';
import { createSealer } from '../tokens/seal.ts';
import { openSqliteStore } from '../tokens/sqlite-store.ts';
import type { TokenStore } from '../tokens/token-store.ts';
import { CommandError } from './terminal.ts';

type StoreSettings = Pick<Config, 'tokenStore' | 'tokenStoreKeys' | 'tokenRescueDir'>;

/** @throws CommandError that says what to do */
export function openStore(
  { path }: StoreAddress,
  { tokenStoreKeys }: Pick<StoreSettings, 'tokenStoreKeys'>,
): TokenStore {
  try {
    return openSqliteStore(path, { sealer: createSealer(tokenStoreKeys) });
  } catch (error) {
    throw new CommandError(
      `The token store cannot be opened (${path}): ${(error as Error).message}. ` +
        'It was left as it is. Check TOKEN_STORE and TOKEN_STORE_KEY, and that this user may write there; ' +
        'when it is damaged, move it away and import a new token with `tokens import <link>`.',
    );
  }
}

/** Where pairs that cannot be saved are put, and looked for. */
export function rescueFolder(settings: StoreSettings, owner: Owner): RescueFolder {
  const { tokenStore, tokenStoreKeys, tokenRescueDir } = settings;
  return {
    directory: tokenRescueDir ?? dirname(tokenStore.path),
    sealer: createSealer(tokenStoreKeys),
    owner,
  };
}

/** Names this process in the history of the tokens. */
export function replicaOf({ host, pid }: Owner): string {
  return `${host}/${pid}`;
}
