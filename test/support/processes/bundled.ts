import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';

const ENTRIES = ['src/process.ts', 'examples/token-keeper/worker.ts'] as const;
const SOURCES = ['{src,sandbox}/**/*.{ts,json}', ...ENTRIES, 'package.json', 'package-lock.json'];
const A_DAY = 86_400_000;
const CACHE = resolve('node_modules/.cache');

let made: Promise<string> | undefined;

/**
 * Bundles a program of the project into a few files with all that it imports. Most of a start is spent finding and
 * loading a thousand modules, and the tests start hundreds of processes. `npm start` and the commands of the
 * documentation show that the unbundled program runs.
 */
export async function bundled(entry: (typeof ENTRIES)[number]): Promise<string> {
  return join(await (made ??= bundle()), `${basename(entry, '.ts')}.mjs`);
}

/** Makes the bundle once for these sources, in the first worker that needs it. */
async function bundle(): Promise<string> {
  const home = join(CACHE, `bundled-${contentOf(SOURCES)}`);
  if (existsSync(home)) return home;
  await mkdir(CACHE, { recursive: true });
  await removeOld();
  const unfinished = await mkdtemp(`${home}-`);
  const { build } = await import('rolldown');
  await build({
    input: [...ENTRIES],
    platform: 'node',
    resolve: { alias: { 'recruiting-subgraph/tokens': resolve('src/library/token-keeper.ts') } },
    // GraphiQL is one string of 9 MB.
    external: [/^node:/, /^@graphql-yoga\/render-graphiql/],
    logLevel: 'silent',
    output: { dir: unfinished, entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
  });
  // Readable for processes of other users as well.
  await chmod(unfinished, 0o755);
  try {
    await rename(unfinished, home);
  } catch (error) {
    await rm(unfinished, { recursive: true });
    if (!existsSync(home)) throw error;
  }
  return home;
}

async function removeOld(): Promise<void> {
  for (const path of globSync(join(CACHE, 'bundled-*'))) {
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity);
    if (age > A_DAY) await rm(path, { recursive: true, force: true });
  }
}

function contentOf(patterns: readonly string[]): string {
  const hash = createHash('sha256');
  for (const path of globSync(patterns).toSorted()) hash.update(path).update(readFileSync(path));
  return hash.digest('hex').slice(0, 16);
}
