import { readFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { fileURLToPath } from 'node:url';
import * as v from 'valibot';
import manifest from '../package.json' with { type: 'json' };
import { authContradictions, authVariables, toAuth } from './config/auth.ts';
import {
  baseUrl,
  COMMAND_LINE,
  count,
  flag,
  foreignLink,
  isOrigin,
  isSecureUrl,
  listOf,
  matching,
  oneOf,
  onOrOff,
  optional,
  preset,
  readStoreAddress,
  secureUrl,
} from './config/values.ts';
import { OperatorMistakes } from './errors.ts';

/** The checked settings of a gateway, from the environment. */
export type Config = Readonly<ReturnType<typeof toConfig>>;

export const VERSION = manifest.version;

const MEGABYTE = 1024 * 1024;
const HEAP = getHeapStatistics().heap_size_limit;
const HOST = /^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])$/;
const SNAPSHOT = fileURLToPath(new URL('../schema/upstream.graphql', import.meta.url));

/**
 * Every variable that is read, except those of Node and of proxies. `docs/reference.md` shows the descriptions and the
 * defaults.
 */
export const variables = v.object({
  RECRUITING_URL: optional(
    baseUrl(),
    'address of the service, without `/graphql`; https, unless it is on this machine',
    'none: the sandbox',
  ),
  RECRUITING_AGENT: preset(
    matching(
      /^[\x20-\x7e]+$/,
      'must be printable ASCII: it is sent as the User-Agent and Api-User-Agent headers',
    ),
    `recruiting-subgraph/${VERSION} (no contact: the operator sets one in RECRUITING_AGENT)`,
    '`name/version (contact)`, sent as `User-Agent` and `Api-User-Agent`; similar services refuse without a contact',
    '`recruiting-subgraph/…`',
  ),
  RECRUITING_SCHEMA: preset(
    v.string(),
    SNAPSHOT,
    "the snapshot of the service's schema: SDL, or the JSON of an introspection",
    '`schema/upstream.graphql` here',
  ),
  GATEWAY_CONFIG: optional(
    v.string(),
    '[what your company adds](extending.md); in production, only a file that is named here is loaded',
    '`gateway.config.ts`, if there',
  ),
  SCHEMA_PREFIX: optional(
    matching(
      /^[A-Za-z]\w{0,49}$/,
      'must be letters, digits and _, beginning with a letter, for example Recruiting',
    ),
    'put before all types and root fields',
  ),
  TOKEN_LINK: optional(
    secureUrl(),
    'the one-time link; imported when the store is empty or its tokens are lost',
  ),
  TOKEN_LINK_ORIGIN: optional(
    v.pipe(
      secureUrl(),
      v.check(
        isOrigin,
        'must be the origin of the token links, for example https://account.example.com (no path)',
      ),
    ),
    'where the service gives out its token links, if elsewhere: [tokens.md](tokens.md#importing)',
    'none: that of the service',
  ),
  TOKEN_STORE: v.pipe(
    preset(
      v.pipe(
        v.string(),
        v.check(
          (text) => readStoreAddress(text) !== undefined,
          'must be sqlite:<file>, for example sqlite:data/tokens.db, or postgres://<user>:<password>@<host>/<database>',
        ),
      ),
      'sqlite:data/tokens.db',
      'a file on a local disk, or `postgres://…` for replicas: [tokens.md](tokens.md)',
    ),
    v.transform((text) => readStoreAddress(text)!),
  ),
  TOKEN_STORE_KEY: optional(
    v.pipe(
      matching(
        /^[A-Za-z0-9+/]{43}=(\s*,\s*[A-Za-z0-9+/]{43}=)*$/,
        'must be 32 bytes in base64 (several are separated by commas, newest first); `openssl rand -base64 32` creates one',
      ),
      v.transform((text): readonly Uint8Array[] =>
        text.split(',').map((key) => Buffer.from(key, 'base64')),
      ),
    ),
    'encrypts the store: 32 bytes in base64, several with the newest first',
  ),
  TOKEN_RESCUE_DIR: optional(
    v.string(),
    'of emergency files, with pairs that are not in the store yet; PostgreSQL `data/rescue`',
    'the folder of the store',
  ),
  ADMIN_HOST: preset(v.string(), '127.0.0.1', 'address of `/metrics`'),
  ADMIN_PORT: count([0, 65_535], 9464, 'port of `/metrics`; 0 takes a free port'),
  HOST: preset(v.string(), '127.0.0.1', 'where to listen; `0.0.0.0` accepts other machines'),
  PORT: count([0, 65_535], 4000, 'where to listen; 0 takes a free port'),
  ...authVariables,
  ALLOW_ANONYMOUS: flag('`true` serves the real service to everybody; not together with `AUTH_…`'),
  CORS_ORIGINS: optional(
    listOf(
      isOrigin,
      'must be origins separated by commas, for example https://people.example.com (no path, no *)',
    ),
    'origins whose pages may send requests, separated by commas: [callers.md](callers.md#host-names-and-origins)',
  ),
  ALLOWED_HOSTS: optional(
    v.pipe(
      v.string(),
      v.toLowerCase(),
      listOf(
        (entry) => HOST.test(entry),
        'must be host names separated by commas, for example recruiting.example.com (no port, no *)',
      ),
    ),
    'host names of requests, separated by commas, without ports',
    'the names of loopback, there',
  ),
  TRUST_PROXY: flag('`true`: the last entry of `X-Forwarded-For` tells anonymous callers apart'),
  MAX_BODY_BYTES: count(
    [1, 100_000_000],
    1_048_576,
    'size of a request; larger ones are refused with 413',
  ),
  MAX_DEPTH: count([1, 1_000], 15, 'depth of an operation, or `OPERATION_TOO_COMPLEX`'),
  MAX_ALIASES: count([0, 100_000], 30, 'aliases of an operation'),
  MAX_TOKENS: count([1, 1_000_000], 2_000, 'tokens (words and signs) of an operation'),
  PAGES_PER_MINUTE: count(
    [0, 100_000_000],
    6_000,
    'upstream pages per minute of one caller, in this process: with n replicas, divide; 0: no limit',
  ),
  TRUSTED_DOCUMENTS: optional(v.string(), 'a file with the trusted documents'),
  TRUSTED_DOCUMENTS_ONLY: flag('`true`: only trusted documents are accepted, except from a router'),
  MUTATIONS: v.pipe(
    preset(
      matching(
        /^[_A-Za-z]\w*(\s*,\s*[_A-Za-z]\w*)*$/,
        'must be off, all, or field names separated by commas',
      ),
      'off',
      '`all`, or names separated by commas; others are `FORBIDDEN` before anything is sent',
    ),
    v.transform((text): 'off' | 'all' | readonly string[] =>
      text === 'off' || text === 'all' ? text : text.split(/\s*,\s*/),
    ),
  ),
  UPSTREAM_CONCURRENCY: count(
    [1, 1_000],
    16,
    'upstream requests in flight of all callers; at most 8 of one operation, plus drains',
  ),
  UPSTREAM_TIMEOUT_MS: count([1, 600_000], 30_000, 'time limit of one upstream request'),
  DRAIN_MAX_ITEMS: count([1, 100_000_000], 100_000, 'records that one operation may drain'),
  DRAIN_CONCURRENCY: count([1, 100], 8, 'pages in flight per drain'),
  MAX_DRAINS: count([1, 1_000], 4, 'drains at a time; others wait up to 30 s'),
  INDEX_MAX_IDS: count(
    [0, 100_000_000],
    200_000,
    'records in all page indexes, kept as hashes; 0 switches them off',
  ),
  CONNECTION_MAX: count([1, 100_000], 500, 'the largest `first` and `last`'),
  TOTAL_COUNT_SECONDS: count(
    [0, 86_400],
    300,
    'how long a `totalCount` is answered from memory: [schema.md](schema.md#totals); 0: always counted',
  ),
  ANSWER_BYTES: count(
    [MEGABYTE, MEGABYTE ** 2],
    Math.min(256 * MEGABYTE, Math.floor(HEAP / 4)),
    'bytes of all answers in memory; 256 MiB at most unless set; what has no room is refused at once',
    'a quarter of the heap',
  ),
  GRAPHIQL: onOrOff('`on` or `off`'),
  INTROSPECTION: onOrOff('`on` or `off`; without introspection GraphiQL shows no documentation'),
  SHUTDOWN_DELAY_MS: count(
    [0, 600_000],
    0,
    'how long requests are still accepted after SIGTERM, while `/ready` answers 503',
  ),
  EXPORT_API_KEY: optional(
    matching(
      /^[\x21-\x7e]+$/,
      `must be the key as \`${COMMAND_LINE} keys new\` printed it, without spaces`,
    ),
    'the key that `export` sends to the gateway of `--url`',
  ),
  LOG_LEVEL: preset(
    oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], 'info'),
    'info',
    '`fatal` to `trace`, or `silent`',
  ),
  NODE_ENV: optional(
    v.string(),
    '`production`: JSON logs, no sandbox, no GraphiQL unless it is switched on',
  ),
});

/** Can also be given as NAME_FILE: the path of a file that contains the value. */
const SECRETS = [
  'TOKEN_LINK',
  'TOKEN_STORE',
  'TOKEN_STORE_KEY',
  'AUTH_API_KEYS',
  'EXPORT_API_KEY',
] as const;

export type SettingName = keyof typeof variables.entries | `${(typeof SECRETS)[number]}_FILE`;

/** As in an environment, or a value of a program. */
export type Setting = string | number | boolean | undefined;

/** What the settings are for. A server has the sandbox inside if no service is set. A command needs no service. */
type Purpose = 'server' | 'gateway' | 'executor' | 'command';

/**
 * Reads and checks the environment.
 *
 * @throws OperatorMistakes all of them, without the value of any secret
 */
export function readConfig(
  env: Readonly<Record<string, Setting>>,
  purpose: Purpose,
  readFile = (path: string) => readFileSync(path, 'utf8'),
): Config {
  // An empty or blank value counts as not set.
  const settings = Object.fromEntries(
    Object.entries(env).flatMap(([name, value = '']) => {
      const text = String(value).trim();
      return text === '' ? [] : [[name, text]];
    }),
  );
  const names = Object.keys(settings);
  const ofFiles = SECRETS.flatMap((name) => secretFile(settings, name, readFile) ?? []);
  const read = v.safeParse(variables, settings, { abortPipeEarly: true });
  const mistakes = [
    ...ofFiles,
    ...(read.issues ?? []).map((issue) => `${v.getDotPath(issue)} ${issue.message}.`),
    ...contradictions(settings, purpose),
    ...names
      .filter(isUnknown)
      .map((name) => `${name} is not a setting. Correct the name, or remove it.`),
  ];
  if (read.success && mistakes.length === 0) return toConfig(read.output);
  throw new OperatorMistakes('The configuration', mistakes);
}

/**
 * Reads a secret that is given as a file, and puts it into the settings.
 *
 * @returns a mistake, which contains neither a secret nor a path, because the path may be the secret itself
 */
function secretFile(
  settings: Record<string, string>,
  name: string,
  readFile: (path: string) => string,
): string | undefined {
  const path = settings[`${name}_FILE`];
  if (path === undefined) return undefined;
  if (settings[name] !== undefined) {
    return `${name} and ${name}_FILE are both set. Remove one of them.`;
  }
  try {
    const secret = readFile(path).trim();
    if (secret === '') return `${name}_FILE names an empty file. Write the secret into it.`;
    settings[name] = secret;
    return undefined;
  } catch (error) {
    const { code = 'unknown error' } = error as { code?: string };
    return `${name}_FILE names a file that cannot be read (${code}). Set it to the path of a file that contains the secret.`;
  }
}

/**
 * Whether a name begins like the settings of the service, the tokens and the callers, but is none: tokens would be kept
 * elsewhere, not be encrypted, or be sent to another service.
 */
function isUnknown(name: string): boolean {
  if (!/^(RECRUITING|TOKEN|AUTH)_/i.test(name) || OF_KUBERNETES.test(name)) return false;
  return !(name in variables.entries) && !SECRETS.some((secret) => name === `${secret}_FILE`);
}

/** Variables that Kubernetes sets in each pod for a Service called `recruiting`, `token-…` or `auth-…`. */
const OF_KUBERNETES = /_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT|PORT_\d+_.+)$/;

/** Finds combinations that would serve made-up people by mistake, or real people to everyone, or nobody. */
function contradictions(settings: Record<string, string>, purpose: Purpose): string[] {
  if (purpose === 'command') return [];
  const { RECRUITING_URL: recruitingUrl, TOKEN_LINK: link, TOKEN_LINK_ORIGIN: origin } = settings;
  if (recruitingUrl === undefined) return withoutService(settings, purpose);
  const mistakes = purpose === 'executor' ? [] : authContradictions(settings);
  if (link === undefined || ![link, recruitingUrl].every(isSecureUrl)) return mistakes;
  const foreign = foreignLink(link, { recruitingUrl, origin });
  return foreign === undefined ? mistakes : [`TOKEN_LINK ${foreign}`, ...mistakes];
}

function withoutService(settings: Record<string, string>, purpose: Purpose): string[] {
  if (purpose !== 'server' || settings['NODE_ENV'] === 'production') {
    return [
      'RECRUITING_URL is not set. Set it to the base address of the service, for example https://api.example.com, ' +
        `or to that of a sandbox: \`${COMMAND_LINE} sandbox\` plays the service on this machine.`,
    ];
  }
  const names = ['TOKEN_LINK', 'TOKEN_STORE', 'TOKEN_STORE_KEY', ...Object.keys(authVariables)];
  const list = names.filter((name) => settings[name] !== undefined).join(', ');
  if (list === '') return [];
  return [
    `${list} without RECRUITING_URL: the sandbox would be served instead of the real service. ` +
      `Set RECRUITING_URL, or remove ${list}. To try them with made-up people, run \`${COMMAND_LINE} sandbox\`, which prints a RECRUITING_URL.`,
  ];
}

/** Every setting under its name in camel case, and what depends on several of them, or on the machine. */
function toConfig(read: Read) {
  const production = read.NODE_ENV === 'production';
  return {
    ...inCamelCase(read),
    agent: read.RECRUITING_AGENT,
    /** Default: the snapshot of this package, whatever the working directory is. */
    schemaPath: read.RECRUITING_SCHEMA,
    /** 32 bytes each, newest first; empty: tokens are not encrypted at rest. */
    tokenStoreKeys: read.TOKEN_STORE_KEY ?? [],
    corsOrigins: read.CORS_ORIGINS ?? [],
    /** Undefined: callers need no credential. */
    auth: toAuth(read),
    graphiql: read.GRAPHIQL ?? !production,
    introspection: read.INTROSPECTION ?? !production,
    /**
     * The bodies of all requests that are not yet answered, bytes: values can take 24 times their text. At least four of
     * the largest bodies.
     */
    requestBytes: Math.max(4 * read.MAX_BODY_BYTES, Math.floor(HEAP / 64)),
    /** The requests that are not yet answered: one for each megabyte of the heap, which the largest operation takes. */
    maxRequests: Math.max(64, Math.floor(HEAP / MEGABYTE)),
    /** Whether NODE_ENV is `production`: the log is JSON, and what helps developers is off by default. */
    production,
  };
}

type Read = v.InferOutput<typeof variables>;

/** `MAX_DEPTH` becomes `maxDepth`. A setting that is not set is undefined. */
type InCamelCase = {
  readonly [Name in Extract<keyof Read, string> as CamelCase<Name>]: Read[Name];
};

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Others}`
  ? `${Lowercase<First>}${Capitalize<CamelCase<Others>>}`
  : Lowercase<Name>;

function inCamelCase(read: Read): InCamelCase {
  const entries = Object.keys(variables.entries).map((name) => [
    name.toLowerCase().replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    read[name as keyof Read],
  ]);
  return Object.fromEntries(entries) as InCamelCase;
}
