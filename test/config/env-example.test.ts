import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as v from 'valibot';
import { configWarnings, readConfig, variables } from '../../src/config.ts';

const TEXT = readFileSync('.env.example', 'utf8');
const settings = Object.fromEntries(
  Array.from(TEXT.matchAll(/^([A-Z_]+)=(.*)$/gm), ([, name, value]) => [name!, value!]),
);
const KEY = Buffer.alloc(32).toString('base64');
const CALLERS = { AUTH_API_KEYS: `portal:${'0'.repeat(64)}`, TOKEN_STORE_KEY: KEY };

test('.env.example serves known callers of a real service, once it has their keys, and nobody before', () => {
  expect(() => readConfig(settings, () => '')).toThrow(/AUTH_API_KEYS/);
  const config = readConfig({ ...settings, ...CALLERS }, () => '');
  expect(config).toMatchObject({
    production: true,
    recruitingUrl: 'https://recruiting.example.com',
  });
  expect(configWarnings(config)).toEqual([]);
});

test('.env.example has each setting once, and those that are commented out have the default', () => {
  const lines = [...TEXT.matchAll(/^(#?)([A-Z][A-Z_]+)=(.*)$/gm)];
  const names = lines.map(([, , name]) => name!);
  const ofNode = ['HTTPS_PROXY', 'NO_PROXY'];
  expect(names.toSorted()).toEqual([...Object.keys(variables.entries), ...ofNode].toSorted());
  for (const [, isComment, name, value] of lines) {
    if (isComment === '' || OF_THE_MACHINE.includes(name!)) continue;
    const variable = variables.entries[name as keyof typeof variables.entries];
    expect([name, value]).toEqual([name, variable ? (v.getDefault(variable) ?? '') : '']);
  }
});

/** Their defaults depend on the machine. */
const OF_THE_MACHINE = ['RECRUITING_SCHEMA', 'ANSWER_BYTES'];

test('.env.example means the same to docker, systemd and Node', () => {
  const lines = TEXT.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  for (const line of lines) expect(line.trim()).toMatch(/^[A-Z_]+=[^"'#\\$]*$/);
  expect(lines.filter((line) => line !== line.trim())).toEqual([]);
});
