import { existsSync } from 'node:fs';
import { systemClock } from '../clock.ts';
import { readConfig, type Config } from '../config.ts';
import { createLog } from '../log.ts';
import { authCheck, type CheckAccess } from '../tokens/auth-check.ts';
import { tokenEndpoint } from '../tokens/exchange.ts';
import { openRescue, type Rescue } from '../tokens/rescue.ts';
import type { RescueFolder } from '../tokens/rescue-file.ts';
import { openSqliteStore } from '../tokens/sqlite-store.ts';
import { createRotation, type Rotation } from '../tokens/rotation.ts';
import type { StoredTokens, TokenStore } from '../tokens/token-store.ts';
import { CommandError, type Terminal } from './terminal.ts';
import { openStore, replicaOf, rescueFolder } from './token-store.ts';

/** What a command has that works on the token store, beside gateways that may be running on it. */
export interface TokenSession {
  readonly config: Config;
  readonly store: TokenStore;
  readonly stored: StoredTokens | null;
  readonly rescueFolder: RescueFolder;
  /** Of the configuration, or else of the set in the store. */
  readonly baseUrl: string | undefined;
}

/**
 * Gives the store back at the end, whatever happens.
 *
 * @param options.create whether a store that does not exist is made; otherwise it is an empty one
 */
export async function withTokenStore<T>(
  terminal: Terminal,
  { create }: { create: boolean },
  work: (session: TokenSession) => Promise<T>,
): Promise<T> {
  const config = readTokenConfig(terminal);
  const store = create ? openStore(config.tokenStore, config) : openExisting(config);
  try {
    const stored = await read(store);
    const baseUrl = config.recruitingUrl ?? stored?.baseUrl;
    if (stored && stored.baseUrl !== baseUrl) throw foreignStore(store, stored, baseUrl!);
    const folder = rescueFolder(config, terminal.owner);
    return await work({ config, store, stored, rescueFolder: folder, baseUrl });
  } finally {
    await store.close();
  }
}

export interface TokenService {
  readonly checkAccess: CheckAccess;
  readonly rescue: Rescue;
  /** Has taken over what the store holds. */
  readonly rotation: Rotation;
}

/** Waits at the end until a pair that was received is safe. */
export async function withTokenService<T>(
  { config, store, rescueFolder: folder }: TokenSession,
  baseUrl: string,
  terminal: Terminal,
  work: (service: TokenService) => Promise<T>,
): Promise<T> {
  const level = terminal.env['LOG_LEVEL'] === undefined ? 'silent' : config.logLevel;
  const log = createLog({ level, json: false, colors: false, destination: terminal.stderr });
  const rescue = openRescue(folder, log);
  const service = { baseUrl, agent: config.agent, proxy: terminal.proxyFor(baseUrl) };
  const clock = systemClock;
  const checkAccess = authCheck(service);
  const rotation = createRotation({
    store,
    rescue,
    connect: tokenEndpoint({ ...service, clock }),
    checkAccess,
    clock,
    log,
    baseUrl,
    replica: replicaOf(terminal.owner),
  });
  try {
    await rescue.saveInto(store);
    await rotation.lookAtStore();
    return await work({ checkAccess, rescue, rotation });
  } finally {
    if (rotation.unsaved) {
      terminal.stderr.write(
        'The new token pair could not be saved. It is tried again, and put into the rescue file at the end: do not kill this command.\n',
      );
    }
    await rotation.stop();
    await rescue.close();
  }
}

/** A question makes no files. */
function openExisting(config: Config): TokenStore {
  const { path } = config.tokenStore;
  if (existsSync(path)) return openStore(config.tokenStore, config);
  return { ...openSqliteStore(':memory:'), description: `sqlite:${path}, which does not exist` };
}

/** Only what the tokens depend on: a command needs no permission to serve. */
export function readTokenConfig({ env, readFile }: Terminal): Config {
  const names = [
    'RECRUITING_URL',
    'RECRUITING_AGENT',
    'TOKEN_STORE',
    'TOKEN_STORE_KEY',
    'TOKEN_STORE_KEY_FILE',
    'TOKEN_RESCUE_DIR',
    'LOG_LEVEL',
  ];
  const settings = Object.fromEntries(names.map((name) => [name, env[name]]));
  return readConfig(settings, readFile, { serves: false });
}

async function read(store: TokenStore): Promise<StoredTokens | null> {
  try {
    return await store.read();
  } catch (error) {
    throw new CommandError(
      `The token store (${store.description}) cannot be read: ${(error as Error).message}. It was left as it is.`,
    );
  }
}

function foreignStore(store: TokenStore, stored: StoredTokens, baseUrl: string): CommandError {
  return new CommandError(
    `The token store (${store.description}) belongs to ${stored.baseUrl}, but RECRUITING_URL is ${baseUrl}. ` +
      'Correct RECRUITING_URL, or name the store of this service with TOKEN_STORE. The store was not changed.',
    2,
  );
}
