import { getHeapStatistics } from 'node:v8';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import manifest from '../package.json' with { type: 'json' };
import { authContradictions, authVariables, toAuth, type AuthSettings } from './config/auth.ts';
import {
  frontDoorContradictions,
  frontDoorVariables,
  toFrontDoor,
  type FrontDoorSettings,
} from './config/front-door.ts';
import { nearMisses, type NearMiss } from './config/near-misses.ts';
import { readSecretFiles, SECRETS } from './config/secret-files.ts';
import { uselessSettings } from './config/useless-settings.ts';
import { baseUrl, choice, count, secureUrl } from './config/values.ts';

export interface StoreAddress {
  readonly kind: 'sqlite';
  readonly path: string;
}

/** The settings of a gateway, read from the environment and checked. */
export interface Config extends FrontDoorSettings {
  /** Undefined: the sandbox is started inside. Without a slash at the end. */
  readonly recruitingUrl: string | undefined;
  readonly agent: string;
  readonly schemaPath: string;
  /** Put before all names that could clash in a supergraph. */
  readonly schemaPrefix: string | undefined;
  /** Between looks at the live schema; undefined: it is not looked at. */
  readonly schemaPollSeconds: number | undefined;
  readonly tokenLink: string | undefined;
  readonly tokenStore: StoreAddress;
  /** 32 bytes each, newest first; none: tokens are not encrypted at rest. */
  readonly tokenStoreKeys: readonly Uint8Array[];
  /** Undefined: the folder of the store. */
  readonly tokenRescueDir: string | undefined;
  readonly adminHost: string;
  readonly adminPort: number;
  /** Whether the operator asked for this very port. */
  readonly adminPortGiven: boolean;
  readonly host: string;
  readonly port: number;
  /** Undefined: callers are not asked who they are. */
  readonly auth: AuthSettings | undefined;
  readonly mutations: 'off' | 'all' | readonly string[];
  readonly upstreamConcurrency: number;
  readonly upstreamTimeoutMs: number;
  readonly drainMaxItems: number;
  readonly drainConcurrency: number;
  readonly maxDrains: number;
  readonly indexMaxIds: number;
  readonly connectionMax: number;
  /** Bytes that the answers of all operations together may hold. */
  readonly answerBytes: number;
  readonly graphiql: boolean;
  readonly introspection: boolean;
  readonly logLevel: string;
  readonly production: boolean;
}

/** Every mistake in the environment, all at once. No value of a secret is in it. */
export class ConfigError extends Error {
  override name = 'ConfigError';
  readonly mistakes: readonly string[];
  constructor(mistakes: readonly string[]) {
    super(
      `The configuration has ${mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`}:\n${mistakes.map((mistake) => `  - ${mistake}`).join('\n')}`,
    );
    this.mistakes = mistakes;
  }
}

export const VERSION = manifest.version;

const MEGABYTE = 1024 * 1024;

/** A quarter of what the process may have for its heap, at most 256 MB. */
function defaultAnswerBytes(): number {
  const { heap_size_limit: heap } = getHeapStatistics();
  return Math.min(256 * MEGABYTE, Math.floor(heap / 4));
}

const SNAPSHOT = new URL('../schema/upstream.graphql', import.meta.url);

const STORE_ADDRESS = /^sqlite:(?<path>.+)$/;
const DEFAULT_STORE = 'sqlite:data/tokens.db';

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** Every variable that is read, beside NODE_ENV, and those of Node and of proxies. */
export const variables = z.object({
  RECRUITING_URL: baseUrl().optional(),
  RECRUITING_AGENT: z
    .string()
    .regex(/^[\x20-\x7e]+$/, 'must be printable ASCII: it is sent as the Api-User-Agent header')
    .default(`recruiting-subgraph/${VERSION}`),
  // The one that comes along, from whichever folder the gateway is started.
  RECRUITING_SCHEMA: z.string().default(fileURLToPath(SNAPSHOT)),
  SCHEMA_PREFIX: z
    .string()
    .regex(
      /^[A-Za-z]\w{0,49}$/,
      'must be letters, digits and _, a letter first, for example Recruiting',
    )
    .optional(),
  SCHEMA_POLL: z
    .string()
    .regex(/^(off|[1-9]\d{1,5})$/, 'must be off, or seconds from 10 to 999999, for example 3600')
    .default('off'),
  TOKEN_LINK: secureUrl().optional(),
  TOKEN_STORE: z
    .string()
    .regex(STORE_ADDRESS, `must be sqlite:<file>, for example ${DEFAULT_STORE}`)
    .default(DEFAULT_STORE),
  TOKEN_STORE_KEY: z
    .string()
    .regex(
      /^[A-Za-z0-9+/]{43}=(\s*,\s*[A-Za-z0-9+/]{43}=)*$/,
      'must be 32 bytes in base64 (several with commas between, newest first); `openssl rand -base64 32` makes one',
    )
    .transform((text) => text.split(/\s*,\s*/).map((key) => Buffer.from(key, 'base64')))
    .optional(),
  TOKEN_RESCUE_DIR: z.string().optional(),
  ADMIN_HOST: z.string().default('127.0.0.1'),
  ADMIN_PORT: count(0, 65_535, 9464),
  HOST: z.string().default('127.0.0.1'),
  PORT: count(0, 65_535, 4000),
  ALLOW_ANONYMOUS: z.enum(['true', 'false'], choice('true or false', 'true')).default('false'),
  ...authVariables,
  ...frontDoorVariables,
  MUTATIONS: z
    .string()
    .regex(
      /^[_A-Za-z]\w*(\s*,\s*[_A-Za-z]\w*)*$/,
      'must be off, all, or field names with commas between',
    )
    .default('off'),
  UPSTREAM_CONCURRENCY: count(1, 1_000, 16),
  UPSTREAM_TIMEOUT_MS: count(1, 600_000, 30_000),
  DRAIN_MAX_ITEMS: count(1, 100_000_000, 100_000),
  DRAIN_CONCURRENCY: count(1, 100, 8),
  MAX_DRAINS: count(1, 1_000, 4),
  INDEX_MAX_IDS: count(0, 100_000_000, 200_000),
  CONNECTION_MAX: count(1, 100_000, 500),
  ANSWER_BYTES: count(1_048_576, 1_099_511_627_776, defaultAnswerBytes()),
  GRAPHIQL: z.enum(['on', 'off'], choice('on or off', 'off')).optional(),
  INTROSPECTION: z.enum(['on', 'off'], choice('on or off', 'off')).optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS, choice(LOG_LEVELS.join(', '), 'info')).default('info'),
});

/**
 * Reads and checks the environment.
 *
 * @param readFile reads the file of a NAME_FILE secret
 * @param serves whether callers are going to be served: then some settings need each other
 * @throws ConfigError
 */
export function readConfig(
  env: Record<string, string | undefined>,
  readFile: (path: string) => string,
  { serves = true }: { serves?: boolean } = {},
): Config {
  const given = withoutEmpty(env);
  const mistakes = readSecretFiles(given, Object.keys(variables.shape), readFile);
  const read = variables.safeParse(given);
  if (!read.success) {
    mistakes.push(...read.error.issues.map(({ path, message }) => `${path.join('.')} ${message}.`));
  }
  if (serves) mistakes.push(...frontDoorContradictions(given), ...contradictions(given));
  const slips = slipsIn(env);
  // With it the sandbox would be served to people who take it for the service.
  const isServiceMeant = serves && slips.some(({ meant }) => meant === 'RECRUITING_URL');
  if (!read.success || mistakes.length > 0 || isServiceMeant) {
    throw new ConfigError([...mistakes, ...slips.map(describeSlip)]);
  }
  return {
    ...toConfig(read.data, given['NODE_ENV'] === 'production'),
    adminPortGiven: given['ADMIN_PORT'] !== undefined,
  };
}

/** What was probably meant otherwise than it is read; nothing that has to end the start. */
export function configWarnings(env: Record<string, string | undefined>, config: Config): string[] {
  return [...slipsIn(env).map(describeSlip), ...uselessSettings(config)];
}

/** In the names of variables. */
function slipsIn(env: Record<string, string | undefined>): NearMiss[] {
  const files = SECRETS.map((name) => `${name}_FILE`);
  return nearMisses(withoutEmpty(env), [...Object.keys(variables.shape), ...files]);
}

function describeSlip({ name, meant }: NearMiss): string {
  const fact = `${name} is not a setting, and is not read.`;
  return meant === 'RECRUITING_URL'
    ? `${fact} RECRUITING_URL was probably meant, and is not set: the sandbox would be served in place of the real service. Rename ${name}, or remove it.`
    : `${fact} Was ${meant} meant?`;
}

/** Undefined when it is none that is supported. */
export function readStoreAddress(text: string): StoreAddress | undefined {
  const path = STORE_ADDRESS.exec(text)?.groups?.['path'];
  return path === undefined ? undefined : { kind: 'sqlite', path };
}

function withoutEmpty(env: Record<string, string | undefined>): Record<string, string> {
  const entries = Object.entries(env).map(([name, value]) => [name, value?.trim()] as const);
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => !!entry[1]));
}

/** What would serve made-up people, or real ones to anybody, by mistake. */
function contradictions(given: Record<string, string>): string[] {
  const { RECRUITING_URL: url, NODE_ENV: environment } = given;
  if (url !== undefined) return authContradictions(given);
  if (environment === 'production') {
    return [
      'RECRUITING_URL is missing: in production the sandbox is not started instead. Set it to the base address of the service, for example https://api.example.com.',
    ];
  }
  return ['TOKEN_LINK', 'TOKEN_STORE', 'TOKEN_STORE_KEY', ...Object.keys(authVariables)]
    .filter((name) => (given[name] ?? given[`${name}_FILE`]) !== undefined)
    .map(
      (name) =>
        `${name} is set, but RECRUITING_URL is not: the sandbox would be served in place of the real service. Set RECRUITING_URL, or remove ${name}.`,
    );
}

function toConfig(
  given: z.output<typeof variables>,
  production: boolean,
): Omit<Config, 'adminPortGiven'> {
  const { MUTATIONS: mutations } = given;
  const onOutsideProduction = (value: 'on' | 'off' | undefined) =>
    value === undefined ? !production : value === 'on';
  return {
    recruitingUrl: given.RECRUITING_URL,
    agent: given.RECRUITING_AGENT,
    schemaPath: given.RECRUITING_SCHEMA,
    schemaPrefix: given.SCHEMA_PREFIX,
    schemaPollSeconds: given.SCHEMA_POLL === 'off' ? undefined : Number(given.SCHEMA_POLL),
    tokenLink: given.TOKEN_LINK,
    tokenStore: readStoreAddress(given.TOKEN_STORE)!,
    tokenStoreKeys: given.TOKEN_STORE_KEY ?? [],
    tokenRescueDir: given.TOKEN_RESCUE_DIR,
    adminHost: given.ADMIN_HOST,
    adminPort: given.ADMIN_PORT,
    host: given.HOST,
    port: given.PORT,
    auth: toAuth(given),
    ...toFrontDoor(given),
    mutations: mutations === 'off' || mutations === 'all' ? mutations : mutations.split(/\s*,\s*/),
    upstreamConcurrency: given.UPSTREAM_CONCURRENCY,
    upstreamTimeoutMs: given.UPSTREAM_TIMEOUT_MS,
    drainMaxItems: given.DRAIN_MAX_ITEMS,
    drainConcurrency: given.DRAIN_CONCURRENCY,
    maxDrains: given.MAX_DRAINS,
    indexMaxIds: given.INDEX_MAX_IDS,
    connectionMax: given.CONNECTION_MAX,
    answerBytes: given.ANSWER_BYTES,
    graphiql: onOutsideProduction(given.GRAPHIQL),
    introspection: onOutsideProduction(given.INTROSPECTION),
    logLevel: given.LOG_LEVEL,
    production,
  };
}
