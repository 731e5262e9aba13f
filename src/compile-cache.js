// JavaScript, and not TypeScript: what strips types takes 16 MB, and a tenth of a start, to load. With the cache on
// before the first TypeScript file is read, it need not be loaded at all.
import { lstatSync, mkdirSync } from 'node:fs';
import { enableCompileCache, getCompileCacheDir } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Beside the code that it is made of: whoever can replace this folder can replace that code. */
const FOLDER = fileURLToPath(new URL('../node_modules/.compile-cache', import.meta.url));

/**
 * Has Node keep what it compiles, which is half of a start. It is loaded as code and its content is not checked, so
 * the folder is used only when no other user can have written to it. NODE_COMPILE_CACHE names another folder, and
 * NODE_DISABLE_COMPILE_CACHE=1 does without; then this does nothing.
 */
export function cacheCompiledCode(folder = FOLDER) {
  if (getCompileCacheDir() === undefined && isOursAlone(folder)) enableCompileCache(folder);
}

/**
 * Makes the folder where there is none. A link is not followed.
 *
 * @param {string} folder
 */
function isOursAlone(folder) {
  // Without users, as on Windows, nothing says who may write.
  const user = process.getuid?.();
  if (user === undefined) return false;
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (error.code !== 'EEXIST') return false;
  }
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.uid === user && (found.mode & 0o022) === 0;
}
