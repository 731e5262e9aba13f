import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { pathOf } from './child-processes.ts';

/** Installs what bench/package-lock.json names, unless it was installed since the last change of that file. */
export function installPeers(): void {
  const installed = pathOf('node_modules/.package-lock.json');
  const lockfile = pathOf('package-lock.json');
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lockfile).mtimeMs) return;
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: pathOf('.'),
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('The peers could not be installed: run npm ci in bench/.');
}
