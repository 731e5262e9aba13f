// For `node --import ./src/start.js src/main.ts`: then src/main.ts itself is found in the cache as well.
import { cacheCompiledCode } from './compile-cache.js';

cacheCompiledCode();
