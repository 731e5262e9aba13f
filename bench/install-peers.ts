import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { pathOf } from './child-processes.ts';

/**
 * Installs what bench/package-lock.json names, unless this was done for the same content of that file. Benchmarks, the
 * supergraph example and the tests at night need these packages.
 */
export function installPeers(): void {
  const lockfile = readFileSync(pathOf('package-lock.json'), 'utf8');
  const installed = pathOf('node_modules/.installed');
  if (existsSync(installed) && readFileSync(installed, 'utf8') === lockfile) return;
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: pathOf('.'),
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('The peers could not be installed: run npm ci in bench/.');
  writeFileSync(installed, lockfile);
}

if (import.meta.main) installPeers();
