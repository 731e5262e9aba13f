import { getHeapStatistics } from 'node:v8';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import manifest from '../package.json' with { type: 'json' };
import { authContradictions, authVariables, toAuth } from './config/auth.ts';
import { COMMAND_LINE } from './config/command-line.ts';
import { readSecretFiles, SECRETS, unknownSettings, withoutEmpty } from './config/environment.ts';
import {
  baseUrl,
  choice,
  count,
  foreignLink,
  isOn,
  isSecureUrl,
  listOf,
  matching,
  onOrOff,
  secureUrl,
  storeAddress,
  trueOrFalse,
} from './config/values.ts';
import { OperatorMistakes } from './errors.ts';

export { withFieldScopes } from './config/auth.ts';

/** The checked settings of a gateway, from the environment. */
export type Config = Readonly<ReturnType<typeof toConfig>>;

/** Lists every mistake in the environment at once, without the value of any secret. */
export class ConfigError extends OperatorMistakes {
  override name = 'ConfigError';
  constructor(mistakes: readonly string[]) {
    super('The configuration', mistakes);
  }
}

export const VERSION = manifest.version;

const MEGABYTE = 1024 * 1024;

/** A quarter of the heap limit of the process, at most 256 MB. */
function defaultAnswerBytes(): number {
  return Math.min(256 * MEGABYTE, Math.floor(heapLimit() / 4));
}

/** A 64th of the heap limit of the process, because values can take 24 times their text, but four of the largest bodies. */
function requestBytes(maxBodyBytes: number): number {
  return Math.max(4 * maxBodyBytes, Math.floor(heapLimit() / 64));
}

function heapLimit(): number {
  return getHeapStatistics().heap_size_limit;
}

const SNAPSHOT = new URL('../schema/upstream.graphql', import.meta.url);

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const HOST = /^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])$/;

/**
 * The settings that `Config` has under these names, each with its variable. The settings of callers are in
 * config/auth.ts.
 */
const SETTINGS = {
  /** Without a final slash; undefined: the sandbox is started inside the gateway. */
  recruitingUrl: ['RECRUITING_URL', baseUrl().optional()],
  agent: [
    'RECRUITING_AGENT',
    matching(
      /^[\x20-\x7e]+$/,
      'must be printable ASCII: it is sent as the User-Agent and Api-User-Agent headers',
    ).default(
      `recruiting-subgraph/${VERSION} (no contact: the operator sets one in RECRUITING_AGENT)`,
    ),
  ],
  /** Default: the snapshot of this package, whatever the working directory is. */
  schemaPath: ['RECRUITING_SCHEMA', z.string().default(fileURLToPath(SNAPSHOT))],
  /**
   * The file with the additions of a company; undefined: gateway.config.ts, if it exists and this is not production.
   */
  gatewayConfig: ['GATEWAY_CONFIG', z.string().optional()],
  /** The prefix of all names that could clash in a supergraph; undefined: no prefix. */
  schemaPrefix: [
    'SCHEMA_PREFIX',
    matching(
      /^[A-Za-z]\w{0,49}$/,
      'must be letters, digits and _, beginning with a letter, for example Recruiting',
    ).optional(),
  ],
  tokenLink: ['TOKEN_LINK', secureUrl().optional()],
  /** The origin of the token links, if it differs from the service's origin. */
  tokenLinkOrigin: [
    'TOKEN_LINK_ORIGIN',
    secureUrl()
      .refine(
        isOrigin,
        'must be the origin of the token links, for example https://account.example.com (no path)',
      )
      .optional(),
  ],
  tokenStore: ['TOKEN_STORE', storeAddress('sqlite:data/tokens.db')],
  /** 32 bytes each, newest first; empty: tokens are not encrypted at rest. */
  tokenStoreKeys: [
    'TOKEN_STORE_KEY',
    matching(
      /^[A-Za-z0-9+/]{43}=(\s*,\s*[A-Za-z0-9+/]{43}=)*$/,
      'must be 32 bytes in base64 (several are separated by commas, newest first); `openssl rand -base64 32` creates one',
    )
      .transform((text): readonly Uint8Array[] =>
        text.split(/\s*,\s*/).map((key) => Buffer.from(key, 'base64')),
      )
      .default([]),
  ],
  /** Undefined: the folder of the store, or data/rescue if the store is not a file. */
  tokenRescueDir: ['TOKEN_RESCUE_DIR', z.string().optional()],
  adminHost: ['ADMIN_HOST', z.string().default('127.0.0.1')],
  adminPort: ['ADMIN_PORT', count(0, 65_535, 9464)],
  host: ['HOST', z.string().default('127.0.0.1')],
  port: ['PORT', count(0, 65_535, 4000)],
  /** The origins whose pages may read answers, as browsers write them. */
  corsOrigins: [
    'CORS_ORIGINS',
    listOf(
      isOrigin,
      'must be origins separated by commas, for example https://people.example.com (no path, no *)',
    ).default([]),
  ],
  /** The host names of the gateway, in lower case and without ports; undefined: not set. */
  allowedHosts: [
    'ALLOWED_HOSTS',
    listOf(
      HOST,
      'must be host names separated by commas, for example recruiting.example.com (no port, no *)',
    ).optional(),
  ],
  /** Whether X-Forwarded-For is trusted. */
  trustProxy: ['TRUST_PROXY', trueOrFalse().default('false').transform(isOn)],
  maxBodyBytes: ['MAX_BODY_BYTES', count(1, 100_000_000, 1_048_576)],
  maxDepth: ['MAX_DEPTH', count(1, 1_000, 15)],
  maxAliases: ['MAX_ALIASES', count(0, 100_000, 30)],
  maxTokens: ['MAX_TOKENS', count(1, 1_000_000, 2_000)],
  /** The budget of one caller: upstream pages in a minute; 0: no limit. */
  pagesPerMinute: ['PAGES_PER_MINUTE', count(0, 100_000_000, 6_000)],
  /** The path of the manifest of trusted documents. */
  trustedDocuments: ['TRUSTED_DOCUMENTS', z.string().optional()],
  /** Whether all other operations are refused. */
  trustedDocumentsOnly: ['TRUSTED_DOCUMENTS_ONLY', trueOrFalse().default('false').transform(isOn)],
  /** How long requests are still accepted after SIGTERM, ms; 0: not at all. */
  shutdownDelayMs: ['SHUTDOWN_DELAY_MS', count(0, 600_000, 0)],
  /** The fields that callers may use; `all`, or `off` for none. */
  mutations: [
    'MUTATIONS',
    matching(
      /^[_A-Za-z]\w*(\s*,\s*[_A-Za-z]\w*)*$/,
      'must be off, all, or field names separated by commas',
    )
      .default('off')
      .transform((text): 'off' | 'all' | readonly string[] =>
        text === 'off' || text === 'all' ? text : text.split(/\s*,\s*/),
      ),
  ],
  /** Whether records have global ids, which `node(id)` accepts. */
  upstreamConcurrency: ['UPSTREAM_CONCURRENCY', count(1, 1_000, 16)],
  upstreamTimeoutMs: ['UPSTREAM_TIMEOUT_MS', count(1, 600_000, 30_000)],
  drainMaxItems: ['DRAIN_MAX_ITEMS', count(1, 100_000_000, 100_000)],
  drainConcurrency: ['DRAIN_CONCURRENCY', count(1, 100, 8)],
  maxDrains: ['MAX_DRAINS', count(1, 1_000, 4)],
  indexMaxIds: ['INDEX_MAX_IDS', count(0, 100_000_000, 200_000)],
  connectionMax: ['CONNECTION_MAX', count(1, 100_000, 500)],
  /** How long totals are answered from memory; 0: they are always counted. */
  totalCountSeconds: ['TOTAL_COUNT_SECONDS', count(0, 86_400, 300)],
  /** The memory for the answers of all operations together, bytes. */
  answerBytes: ['ANSWER_BYTES', count(1_048_576, 1_099_511_627_776, defaultAnswerBytes())],
  /** Default: off in production. */
  graphiql: ['GRAPHIQL', onOrOff('off').transform(isOn).optional()],
  /** Default: off in production. */
  introspection: ['INTROSPECTION', onOrOff('off').transform(isOn).optional()],
  /** The key that `export --url` sends to a gateway. */
  exportApiKey: [
    'EXPORT_API_KEY',
    matching(
      /^[\x21-\x7e]+$/,
      `must be the key as \`${COMMAND_LINE} keys new\` printed it, without spaces`,
    ).optional(),
  ],
  logLevel: [
    'LOG_LEVEL',
    z.enum(LOG_LEVELS, choice(`one of ${LOG_LEVELS.join(', ')}`, 'info')).default('info'),
  ],
} as const satisfies Record<string, readonly [name: string, type: z.ZodType]>;

type Settings = typeof SETTINGS;

/** Every variable that is read, except NODE_ENV and the variables of Node and of proxies. */
export const variables = z.object({
  ...(Object.fromEntries(Object.values(SETTINGS)) as {
    [Key in keyof Settings as Settings[Key][0]]: Settings[Key][1];
  }),
  ALLOW_ANONYMOUS: trueOrFalse().default('false'),
  ...authVariables,
});

export type SettingName =
  keyof typeof variables.shape | `${(typeof SECRETS)[number]}_FILE` | 'NODE_ENV';

type Environment = Record<string, string | undefined>;

/** Reads the file of a NAME_FILE secret. */
type ReadFile = (path: string) => string;

/**
 * Reads and checks the environment of a gateway.
 *
 * @param hasCallers whether others can send requests: then the settings must say who may. Default: true
 * @param hasSandbox whether the sandbox replaces a service that is not set. Default: true
 * @throws ConfigError
 */
export function readConfig(
  env: Environment,
  readFile: ReadFile,
  { hasCallers = true, hasSandbox = true }: { hasCallers?: boolean; hasSandbox?: boolean } = {},
): Config {
  const settings = withoutEmpty(env);
  return checked(settings, readFile, (values) => [
    // A program around the gateway listens by itself.
    ...(values && hasCallers && hasSandbox ? samePort(values) : []),
    ...(hasCallers ? [...otherProduction(settings), ...uselessWithoutOthers(settings)] : []),
    ...contradictions(settings, { hasCallers, hasSandbox }),
    ...unknownSettings(env, SETTING_NAMES),
  ]);
}

/**
 * Reads only the settings that a command needs. They do not require other settings.
 *
 * @param refusesUnknown whether an unknown variable that begins like a setting of the service, the tokens or the
 * callers is a mistake. Default: false
 * @throws ConfigError
 */
export function readNamedSettings(
  env: Environment,
  readFile: ReadFile,
  names: readonly SettingName[],
  { refusesUnknown = false }: { refusesUnknown?: boolean } = {},
): Config {
  const settings = withoutEmpty(Object.fromEntries(names.map((name) => [name, env[name]])));
  return checked(settings, readFile, () =>
    refusesUnknown ? unknownSettings(env, SETTING_NAMES) : [],
  );
}

const SETTING_NAMES = Object.keys(variables.shape);

/**
 * @param mistakesIn finds further mistakes; its argument is undefined if some of the values cannot be read
 * @throws ConfigError with all mistakes
 */
function checked(
  settings: Record<string, string>,
  readFile: ReadFile,
  mistakesIn: (values: z.output<typeof variables> | undefined) => readonly string[],
): Config {
  const mistakes = readSecretFiles(settings, SETTING_NAMES, readFile);
  const { data: values, error } = variables.safeParse(settings);
  mistakes.push(
    ...(error?.issues ?? []).map((issue) => `${issue.path.join('.')} ${issue.message}.`),
    ...mistakesIn(values),
  );
  if (values && mistakes.length === 0) return toConfig(values, settings);
  throw new ConfigError(mistakes);
}

/** Reports settings that are probably mistakes but do not prevent the start. */
export function configWarnings(config: Config): string[] {
  return [...uselessSettings(config), ...(WITH_CONTACT.test(config.agent) ? [] : [NO_CONTACT])];
}

/** `name/version (contact)`. */
const WITH_CONTACT = /^[^\s/()]+\/[^\s()]+ \([^()]*[^()\s][^()]*\)/;

const NO_CONTACT =
  'RECRUITING_AGENT has no contact: services like the recruiting service refuse such requests. ' +
  'Set it to name/version (contact), for example example-inc/1.0 (it@example.com).';

function uselessSettings({ graphiql, introspection, trustedDocumentsOnly }: Config): string[] {
  if (!graphiql) return [];
  if (trustedDocumentsOnly) {
    return [
      'GraphiQL is on, but only trusted documents are accepted: it can run no operation. Set GRAPHIQL=off.',
    ];
  }
  return introspection
    ? []
    : [
        'GraphiQL is on, but introspection is off: it will show no documentation. Set INTROSPECTION=on, or GRAPHIQL=off.',
      ];
}

/** Finds combinations that would serve made-up people by mistake, or real people to everyone. */
function contradictions(
  settings: Record<string, string>,
  { hasCallers, hasSandbox }: { hasCallers: boolean; hasSandbox: boolean },
): string[] {
  const { RECRUITING_URL: url, NODE_ENV: environment } = settings;
  if (url !== undefined) {
    return [...linkOfOthers(url, settings), ...(hasCallers ? authContradictions(settings) : [])];
  }
  if (!hasSandbox) {
    return [
      `RECRUITING_URL is not set. Set it to the base address of the service, for example https://api.example.com, or to that of a sandbox: \`${COMMAND_LINE} sandbox\` plays the service on this machine.`,
    ];
  }
  if (environment === 'production') {
    return [
      'RECRUITING_URL is not set, and the sandbox is not served in production. Set RECRUITING_URL to the base address of the service, for example https://api.example.com.',
    ];
  }
  const names = ['TOKEN_LINK', 'TOKEN_STORE', 'TOKEN_STORE_KEY', ...Object.keys(authVariables)];
  const ofService = names.filter(
    (name) => (settings[name] ?? settings[`${name}_FILE`]) !== undefined,
  );
  if (ofService.length === 0) return [];
  const list = new Intl.ListFormat('en', { style: 'long' }).format(ofService);
  return [
    `${list} ${ofService.length > 1 ? 'are' : 'is'} set, but RECRUITING_URL is not: the sandbox would be served instead of the real service. ` +
      `Set RECRUITING_URL, or remove ${list}. To try them with made-up people, run \`${COMMAND_LINE} sandbox\`, which prints a RECRUITING_URL.`,
  ];
}

function linkOfOthers(recruitingUrl: string, settings: Record<string, string>): string[] {
  const { TOKEN_LINK: link, TOKEN_LINK_ORIGIN: origin } = settings;
  if (link === undefined || ![link, recruitingUrl].every(isSecureUrl)) return [];
  const complaint = foreignLink(link, { recruitingUrl, origin });
  return complaint === undefined ? [] : [`TOKEN_LINK ${complaint}`];
}

/** Reports other spellings of `production`. */
function otherProduction({ NODE_ENV: environment = '' }: Record<string, string>): string[] {
  const isMeant = ['prod', 'production'].includes(environment.toLowerCase());
  if (!isMeant || environment === 'production') return [];
  return [
    `NODE_ENV=${environment} would start a gateway for development, with GraphiQL and introspection. Set NODE_ENV=production, or remove it.`,
  ];
}

function samePort({ PORT, ADMIN_PORT, ...read }: z.output<typeof variables>): string[] {
  const hosts = [read.HOST, read.ADMIN_HOST];
  const isSameHost = hosts[0] === hosts[1] || hosts.some((host) => ALL.includes(host));
  if (PORT !== ADMIN_PORT || PORT === 0 || !isSameHost) return [];
  return [
    `PORT and ADMIN_PORT are both ${PORT}. Set one of them to another port: requests and metrics need one each.`,
  ];
}

/** Addresses that include all other addresses of the machine. */
const ALL: readonly string[] = ['0.0.0.0', '::'];

function uselessWithoutOthers(settings: Readonly<Record<string, string>>): string[] {
  const mistakes: string[] = [];
  if (
    settings['TRUSTED_DOCUMENTS_ONLY'] === 'true' &&
    settings['TRUSTED_DOCUMENTS'] === undefined
  ) {
    mistakes.push(
      'TRUSTED_DOCUMENTS_ONLY=true accepts only the operations of TRUSTED_DOCUMENTS, which is not set. Set it to the path of the manifest.',
    );
  }
  return mistakes;
}

function toConfig(read: z.output<typeof variables>, settings: Record<string, string>) {
  const production = settings['NODE_ENV'] === 'production';
  const values = Object.fromEntries(
    Object.entries(SETTINGS).map(([key, [name]]) => [key, read[name]]),
  ) as { readonly [Key in keyof Settings]: z.output<Settings[Key][1]> };
  return {
    ...values,
    /** Undefined: callers need no credential. */
    auth: toAuth(read),
    /** Whether ADMIN_PORT is set. */
    isAdminPortSet: settings['ADMIN_PORT'] !== undefined,
    graphiql: values.graphiql ?? !production,
    introspection: values.introspection ?? !production,
    /** The bodies of all requests that are not yet answered, and of those to the service, bytes. */
    requestBytes: requestBytes(values.maxBodyBytes),
    /** The requests that are not yet answered: one for each megabyte of the heap, which the largest operation takes. */
    maxRequests: Math.max(64, Math.floor(heapLimit() / MEGABYTE)),
    /** Whether NODE_ENV is `production`: the log is JSON, and what helps developers is off by default. */
    production,
  };
}

function isOrigin(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text;
}
