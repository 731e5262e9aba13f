import { statSync } from 'node:fs';
import { systemClock } from '../clock.ts';
import { readNamedSettings, type Config } from '../config.ts';
import { authCheck, type CheckAccess } from '../tokens/service/auth-check.ts';
import { tokenEndpoint } from '../tokens/service/exchange.ts';
import {
  boundStore,
  upgradeNotice,
  type StoredTokens,
  type TokenStore,
} from '../tokens/store/token-store.ts';
import { openRescue, waitingPairs, type RescueReport } from '../tokens/store/rescue.ts';
import type { PostgresStore } from '../tokens/store/postgres/postgres-store.ts';
import type { RescueFolder } from '../tokens/store/sealed-file.ts';
import { openSqliteStore } from '../tokens/store/sqlite/sqlite-store.ts';
import { IF_MISSING } from '../tokens/token-health.ts';
import { REFUSED, createTokenRefresher, type TokenRefresher } from '../tokens/token-refresher.ts';
import { createTokenSync, type TokenSync } from '../tokens/token-sync.ts';
import { describeStore, openStore, replicaOf, rescueFolder } from '../setup/token-store.ts';
import {
  printRescued,
  readAsItIs,
  readOrFill,
  readOrRepair,
  type OpenedStore,
} from './damaged-store.ts';
import { CommandError, commandLog, duration, type Terminal } from './terminal.ts';

/** The token store as a command uses it. Gateways may be running on the same store. */
export interface TokenSession extends OpenedStore {
  readonly config: Config;
  readonly stored: StoredTokens | null;
}

/**
 * What a command does with the store. `inspect` does not write to any file. If the store does not exist, `inspect` and
 * `work` treat it as empty, `create` creates it, and `recover` creates it if a pair for it waits in a rescue file; both
 * save that pair first. `recover` also repairs tables, and `rebuild` replaces tables that cannot be repaired.
 */
type Purpose = 'inspect' | 'work' | 'recover' | 'rebuild' | 'create';

/** Opens the store for `work`, and closes it at the end. */
export async function withTokenStore<T>(
  terminal: Terminal,
  purpose: Purpose,
  work: (session: TokenSession) => Promise<T>,
  config = readTokenConfig(terminal, { refusesUnknown: purpose !== 'inspect' }),
): Promise<T> {
  const opened = await openFor(purpose, config, terminal);
  const { store, warn } = opened;
  try {
    const stored = await readFor(purpose, opened);
    const upgraded = upgradeNotice(store);
    if (upgraded !== undefined) warn(upgraded);
    const identity = identityOf(config, stored);
    if (stored && stored.baseUrl !== identity.baseUrl) {
      throw foreignStore(store, stored, identity.baseUrl!);
    }
    return await work({ ...opened, identity, config, stored });
  } finally {
    await store.close();
  }
}

export interface TokenService {
  readonly checkAccess: CheckAccess;
  /** What earlier processes left in rescue files. Already printed. */
  readonly rescued: RescueReport;
  /** In sync with the store. */
  readonly held: TokenSync;
  readonly refresher: TokenRefresher;
}

/**
 * Gives `work` a refresher, and afterwards waits until a pair that was received is saved.
 *
 * @throws CommandError when all that could be done was to put it into the rescue file
 */
export async function withTokenService<T>(
  { config, store, rescueFolder: folder, warn }: TokenSession,
  baseUrl: string,
  terminal: Terminal,
  work: (service: TokenService) => Promise<T>,
): Promise<T> {
  const log = await commandLog(config, terminal);
  const rescue = openRescue(folder, log, { stays: true });
  const service = { baseUrl, agent: config.agent, proxy: terminal.proxyFor(baseUrl) };
  const clock = systemClock;
  const checkAccess = authCheck(service);
  let wasRefused = false;
  const replica = replicaOf(terminal.owner);
  const parts = { store, rescue, checkAccess, clock, log, baseUrl, replica };
  const held = createTokenSync(parts);
  const connect = tokenEndpoint({ ...service, clock });
  const onRefused = (waitSeconds: number) => {
    wasRefused = true;
    warn(`${REFUSED} It waits at most ${duration(waitSeconds)}.`);
  };
  const refresher = createTokenRefresher({ ...parts, connect, onRefused }, held);
  // A signal does not end an exchange in progress; it only prevents the next one.
  const stop = () => void refresher.stop();
  terminal.stop.addEventListener('abort', stop, { once: true });
  let wasUnsaved = false;
  let result: T;
  try {
    const rescued = await rescue.saveInto(store, baseUrl);
    printRescued(rescued, warn);
    await held.sync();
    result = await work({ checkAccess, rescued, held, refresher });
  } catch (error) {
    throw wasRefused && terminal.stop.aborted ? new CommandError(STOPPED_WAITING) : error;
  } finally {
    wasUnsaved = held.saver.pending !== undefined;
    if (wasUnsaved) warn(TRYING_TO_SAVE);
    await refresher.stop();
    terminal.stop.removeEventListener('abort', stop);
    await rescue.close();
  }
  if (held.saver.pending) throw new CommandError(inRescueFile(store, folder));
  if (wasUnsaved) warn('The token pair is saved now.');
  return result;
}

export interface TokenTools extends TokenSession, TokenService {
  /** To the standard output, as a line. */
  readonly print: (text: string) => void;
}

/** Opens the store and a refresher for `work`, and prints what was found. @throws CommandError if there are no tokens */
export async function withTokens(
  terminal: Terminal,
  purpose: Purpose,
  work: (tools: TokenTools) => Promise<void>,
): Promise<void> {
  const print = (text: string) => void terminal.stdout.write(`${text}\n`);
  await withTokenStore(terminal, purpose, async (session) => {
    const { stored } = session;
    if (!stored) throw await noTokens(session);
    await withTokenService(session, stored.baseUrl, terminal, async (service) => {
      print(searched(session, service));
      await work({ ...session, ...service, print });
    });
  });
}

/** Describes where a command looked for the newest pair, and what it found. */
function searched(
  { store, repairs, rescueFolder: { directory } }: TokenSession,
  { held, rescued }: TokenService,
): string {
  const { tokens } = held;
  const { saved, failed, elsewhere } = rescued;
  const files = [
    [repairs.saved + saved.length, 'saved into the store'],
    [failed.length, 'that could not be saved'],
    [elsewhere.length, 'of another store'],
  ] as const;
  const pairs = files.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  const answers = tokens ? held.answers.kept(tokens).length : 0;
  return (
    `Searched: the store (${store.description}), which has ${tokens ? `generation ${tokens.generation}` : 'no token set'}; ` +
    `the rescue folder of this machine (${directory}), which has ${pairs.length > 0 ? `pairs: ${pairs.join(', ')}` : 'no pair that the store lacks'}` +
    `${answers > 0 ? `, and ${answers === 1 ? 'an answer' : `${answers} answers`} that could not be read` : ''}.`
  );
}

const STOPPED_WAITING =
  'Stopped before it was certain that no other process has the next token pair. Nothing is decided yet. ' +
  'Run `tokens recover` to decide it.';

const TRYING_TO_SAVE =
  'The new token pair could not be saved to the store. Saving is tried again for some seconds: do not kill this command.';

function inRescueFile({ description }: TokenStore, { directory }: RescueFolder): string {
  return (
    `The new token pair could not be saved to the store (${description}). It is in a rescue file in ${directory}: do not remove that file. ` +
    'Free the disk or restore the permissions, then run `tokens recover`, which saves it; the next start of a gateway does so too.'
  );
}

function identityOf({ tokenStore, recruitingUrl }: Config, stored: StoredTokens | null) {
  return {
    description: describeStore(tokenStore),
    storeId: stored?.storeId,
    set: stored?.set,
    baseUrl: recruitingUrl ?? stored?.baseUrl,
  };
}

/** The error for an empty store. */
export async function noTokens({ store, rescueFolder: folder, identity }: TokenSession) {
  const waiting = await waitingPairs(folder, store, identity);
  const ours = waiting.find(({ isOurs }) => isOurs);
  const nothing = `There is no token set in the store (${store.description}).`;
  if (ours) {
    return new CommandError(
      `${nothing} Its newest token pair waits in a rescue file (${ours.path}): do not remove it. ` +
        (ours.why === undefined
          ? 'Run `tokens recover`, or start the gateway: both save the pair into the store, and make one if there is none.'
          : `It cannot be read: ${ours.why}. Correct that (TOKEN_STORE_KEY as the gateway has it, permissions), and run \`tokens recover\`.`),
    );
  }
  const others = waiting.map(({ path, store: of }) => (of ? `${path}, of ${of}` : path)).join('; ');
  const elsewhere = `A token pair of another store waits in a rescue file (${others}): do not remove it. If that is the store that you mean, set TOKEN_STORE to it. `;
  return new CommandError(`${nothing} ${others && elsewhere}${IF_MISSING}`);
}

async function openFor(
  purpose: Purpose,
  config: Config,
  { owner, stderr }: Terminal,
): Promise<OpenedStore> {
  const { tokenStore } = config;
  const identity = identityOf(config, null);
  const folder = rescueFolder(config, owner);
  const warn = (text: string) => void stderr.write(`${text}\n`);
  const opened = (store: TokenStore & Partial<PostgresStore>, isMade = false): OpenedStore => {
    const { completeTables, replaceTables } = store;
    const tables = completeTables && replaceTables && { completeTables, replaceTables };
    const repairs = { isMade, saved: 0 };
    const bound = boundStore(store, systemClock);
    return { store: bound, tables, rescueFolder: folder, identity, warn, repairs };
  };
  if (exists(tokenStore)) {
    return opened(openStore(tokenStore, config, { readOnly: purpose === 'inspect' }));
  }
  const description = `${identity.description}, which does not exist`;
  const nothing = { ...openSqliteStore(':memory:'), description };
  if (purpose === 'inspect' || purpose === 'work') return opened(nothing);
  const waiting = await waitingPairs(folder, nothing, identity);
  if (!waiting.some(({ isOurs, why }) => isOurs && why === undefined)) {
    return opened(purpose === 'create' ? openStore(tokenStore, config) : nothing);
  }
  const made = opened(openStore(tokenStore, config), true);
  warn(`The token store was gone: a new one was made (${made.store.description}).`);
  return made;
}

/** A file without permission to look at it counts as existing, so that opening it reports the reason. */
function exists(store: Config['tokenStore']): boolean {
  if (store.kind === 'postgres') return true;
  try {
    return statSync(store.path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

function readFor(purpose: Purpose, opened: OpenedStore): Promise<StoredTokens | null> {
  if (purpose === 'create') return readOrFill(opened);
  if (purpose !== 'recover' && purpose !== 'rebuild') return readAsItIs(opened);
  return readOrRepair(opened, { rebuild: purpose === 'rebuild' });
}

/** Reads only the settings for tokens, because these commands need none for callers. */
export function readTokenConfig(
  { env, readFile }: Terminal,
  checks: { readonly refusesUnknown: boolean },
): Config {
  const names = [
    'RECRUITING_URL',
    'RECRUITING_AGENT',
    'TOKEN_LINK_ORIGIN',
    'TOKEN_STORE',
    'TOKEN_STORE_FILE',
    'TOKEN_STORE_KEY',
    'TOKEN_STORE_KEY_FILE',
    'TOKEN_RESCUE_DIR',
    'NODE_ENV',
    'LOG_LEVEL',
  ] as const;
  return readNamedSettings(env, readFile, names, checks);
}

function foreignStore(store: TokenStore, stored: StoredTokens, baseUrl: string): CommandError {
  return new CommandError(
    `The token store (${store.description}) belongs to ${stored.baseUrl}, but RECRUITING_URL is ${baseUrl}. ` +
      'Correct RECRUITING_URL, or name the store of this service with TOKEN_STORE. The store was not changed.',
    2,
  );
}
