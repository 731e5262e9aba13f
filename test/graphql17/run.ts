/**
 * Checks the types and runs the suite with graphql 17, in a temporary copy of the project with packages of its own.
 *
 *   npm run test:graphql17 [-- files and options of vitest]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import process from 'node:process';

const NOT_COPIED = ['.git', 'node_modules', 'data'];

const folder = mkdtempSync(join(tmpdir(), 'recruiting-graphql17-'));
// Some tests run processes of other users.
chmodSync(folder, 0o755);
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.exitCode = await testWithGraphql17(process.argv.slice(2));

/** Returns the exit code of the first command that failed. */
async function testWithGraphql17(options: readonly string[]): Promise<number> {
  cpSync('.', folder, {
    recursive: true,
    filter: (source) => !NOT_COPIED.includes(relative('.', source)),
  });
  requireGraphql17(join(folder, 'package.json'));
  return (
    (await npm('install', '--prefer-offline', '--no-audit', '--no-fund')) ||
    (await npm('ls', '--depth=0', 'graphql')) ||
    (await npm('exec', '--', 'tsc', '--noEmit')) ||
    (await npm('test', '--', ...options))
  );
}

/** Also for the packages that accept only 16: two copies of graphql refuse each other's schemas. */
function requireGraphql17(path: string): void {
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as {
    dependencies: Record<string, string>;
    overrides: Record<string, string>;
  };
  manifest.dependencies['graphql'] = '^17';
  manifest.overrides['graphql'] = '$graphql';
  writeFileSync(path, JSON.stringify(manifest, null, 2));
}

async function npm(...args: readonly string[]): Promise<number> {
  const child = spawn('npm', ['--prefix', folder, ...args], { cwd: folder, stdio: 'inherit' });
  // As Ctrl+C in a terminal, which sends the signal to the child too.
  const end = () => void child.kill();
  process.once('SIGTERM', end).once('SIGINT', end);
  const [code] = (await once(child, 'exit')) as [number | null];
  process.off('SIGTERM', end).off('SIGINT', end);
  return code ?? 1;
}
