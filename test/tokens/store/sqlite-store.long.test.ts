import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import { openSqliteStore } from '../../../src/tokens/store/sqlite/sqlite-store.ts';
import { closing, folder } from './sqlite-support.ts';
import { tokenStoreContract } from './token-store-contract.ts';

tokenStoreContract('sqlite in memory', () => closing(openSqliteStore(':memory:')));
tokenStoreContract('sqlite in a file', () => closing(openSqliteStore(join(folder(), 'tokens.db'))));
tokenStoreContract('sqlite in a file, sealed', () =>
  closing(
    openSqliteStore(join(folder(), 'tokens.db'), { sealer: createSealer([randomBytes(32)]) }),
  ),
);
