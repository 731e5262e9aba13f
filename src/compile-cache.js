// JavaScript, and not TypeScript: what strips types takes 16 MB, and a tenth of a start, to load. With the cache on
// before the first TypeScript file is read, it need not be loaded at all.
import { lstatSync, mkdirSync } from 'node:fs';
import { enableCompileCache, getCompileCacheDir } from 'node:module';
import { resolve, sep } from 'node:path';

/** Beside the code that it is made of: whoever can replace this folder can replace that code. */
const FOLDER = resolve(packagesOf(import.meta.dirname), '.compile-cache');

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

/**
 * The folder of the packages that this code imports: the one that it is installed in itself, or that of the checkout.
 *
 * @param {string} folder
 */
function packagesOf(folder) {
  const name = `${sep}node_modules${sep}`;
  const at = folder.lastIndexOf(name);
  return at < 0 ? resolve(folder, '../node_modules') : folder.slice(0, at + name.length);
}
