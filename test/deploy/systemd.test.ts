import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/sandbox.ts';
import { heapOf, instructions, lastStage, megabytes } from '../support/deploy/dockerfile.ts';
import { settingsIn } from '../support/deploy/env-file.ts';
import { blockWith } from '../support/docs/documents.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { served, startProcess } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const FILE = 'deploy/systemd/recruiting-subgraph.service';
const TEXT = readFileSync(FILE, 'utf8');
const unit = new Map(
  Array.from(TEXT.matchAll(/^(\w+)=(.*)$/gm), ([, name, value]) => [name!, value!]),
);
const INSTALLATION = blockWith('docs/running.md', 'systemctl enable');

test('the unit of systemd starts a gateway with .env.example, which ends on SIGTERM', async () => {
  const sandbox = await startSandbox();
  using folder = temporaryFolder();
  writeFileSync(folder.file('key'), Buffer.alloc(32).toString('base64'));
  // What the commands of docs/running.md append to .env.example, with the paths of this machine.
  const appended = [...INSTALLATION.matchAll(/^([A-Z_]+=.*)$/gm)].map(([line]) => line).join('\n');
  const env = settingsIn(readFileSync('.env.example', 'utf8') + appended);
  expect(env['TOKEN_STORE']).toBe(`sqlite:/var/lib/${unit.get('StateDirectory')}/store/tokens.db`);
  expect(env['TOKEN_RESCUE_DIR']).toBe(`/var/lib/${unit.get('StateDirectory')}/rescue`);
  const [node, ...args] = unit.get('ExecStart')!.split(' ');
  expect(node).toBe('/usr/bin/node');
  await using gateway = await served(
    startProcess(args, {
      env: {
        ...env,
        ...settingsIn(unit.get('Environment')!),
        RECRUITING_URL: sandbox.url,
        TOKEN_LINK: sandbox.tokenLink,
        TOKEN_STORE: `sqlite:${folder.file('store/tokens.db')}`,
        TOKEN_RESCUE_DIR: folder.file('rescue'),
        TOKEN_STORE_KEY_FILE: folder.file('key'),
        AUTH_API_KEYS: '',
        AUTH_API_KEYS_FILE: '',
        ALLOW_ANONYMOUS: 'true',
        ALLOWED_HOSTS: '127.0.0.1',
        PORT: '0',
        ADMIN_PORT: '0',
      },
    }),
  );
  expect(await askAt(gateway.url, '{ allPersons(limit: 1) { __typename } }')).toEqual({
    data: { allPersons: [{ __typename: 'Person' }] },
  });
  expect((await gateway.stop()).code).toBe(0);
  await sandbox.close();
});

test('the unit gives the gateway time to save a refresh, and the memory that its heap needs', () => {
  expect(Number(unit.get('TimeoutStopSec'))).toBeGreaterThanOrEqual(10 + 120);
  expect(unit.get('KillMode')).toBe('mixed');
  const image = lastStage(instructions(readFileSync('Dockerfile', 'utf8')));
  expect(unit.get('Environment')).toBe(`NODE_OPTIONS=${image.env['NODE_OPTIONS']}`);
  expect(megabytes(unit.get('MemoryMax')!)).toBeGreaterThanOrEqual(2 * heapOf(image));
});

test('a mistake in the settings ends the unit instead of starting it again', async () => {
  const { code } = await startProcess(['src/main.ts', 'serve'], {
    env: settingsIn(readFileSync('.env.example', 'utf8')),
  }).ended;
  expect(String(code)).toBe(unit.get('RestartPreventExitStatus'));
});

test('the unit runs as the user that docs/running.md makes, with the files that it installs', () => {
  expect(INSTALLATION).toContain(`useradd --system`);
  expect(INSTALLATION).toMatch(new RegExp(` ${unit.get('User')}$`, 'm'));
  expect(INSTALLATION).toContain(unit.get('EnvironmentFile'));
  expect(INSTALLATION).toContain(FILE);
});

test('commands with `node --env-file` read .env.example as the unit does', () => {
  const print = 'process.stdout.write(JSON.stringify(process.env))';
  const { stdout } = spawnSync(process.execPath, ['--env-file=.env.example', '-e', print], {
    encoding: 'utf8',
    env: {},
  });
  expect(JSON.parse(stdout)).toEqual(settingsIn(readFileSync('.env.example', 'utf8')));
  expect(INSTALLATION.match(/--env-file=\S+/g)).toEqual([
    `--env-file=${unit.get('EnvironmentFile')}`,
    `--env-file=${unit.get('EnvironmentFile')}`,
  ]);
});

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

test.runIf(hasSystemd)('systemd knows every line of the unit', () => {
  using folder = temporaryFolder();
  const path = folder.file('recruiting-subgraph.service');
  // Node and the user are not there on the machine of the tests.
  const here = TEXT.replace('/usr/bin/node', process.execPath)
    .replace('User=recruiting', 'User=root')
    .replace('Group=recruiting', 'Group=root');
  const verify = (text: string) => {
    writeFileSync(path, text);
    return spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' });
  };
  expect(verify(here).stderr).toBe('');
  expect(verify(here.replace('KillMode', 'KillMod')).stderr).toContain('KillMod');
});
