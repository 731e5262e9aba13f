import { join } from 'node:path';
import { openSqliteStore } from '../../src/tokens/sqlite-store.ts';
import { closing, folder } from './sqlite-support.ts';
import { tokenStoreContract } from './token-store-contract.ts';

tokenStoreContract('sqlite in memory', () => closing(openSqliteStore(':memory:')));
tokenStoreContract('sqlite in a file', () => closing(openSqliteStore(join(folder(), 'tokens.db'))));
