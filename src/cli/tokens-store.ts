import { existsSync } from 'node:fs';
import type { Dispatcher } from 'undici';
import { readSettings, type Config } from '../config.ts';
import type { Emergency } from '../tokens/emergency.ts';
import { foreignStore, storeProblem } from '../tokens/errors.ts';
import { TokenHolder } from '../tokens/holder.ts';
import { proxyAgent, type RecruitingTokens } from '../tokens/service.ts';
import type { Reading, TokenStore } from '../tokens/store.ts';
import { emergencyFor, holderParts, openTokenStore } from '../setup/custody.ts';
import { STEPS } from '../setup/wording.ts';
import { CommandError, commandLog, exitCodeOf, type Terminal } from './terminal.ts';

interface OpenStore {
  readonly config: Config;
  readonly store: TokenStore;
  readonly emergency: Emergency;
}

/** A token store as it is. A gateway may change it at any moment. */
export interface ReadTokens extends Reading, OpenStore {}

/** Reads the token store for `work`. A file that does not exist is not created. */
export async function withReadTokens<T>(
  terminal: Terminal,
  work: (tokens: ReadTokens) => Promise<T>,
): Promise<T> {
  const config = readSettings(terminal.env, terminal.readFile);
  const { tokenStore, recruitingUrl } = config;
  const emergency = emergencyFor(config);
  const store = openTokenStore(tokenStore, config);
  const found = await read().catch((error: unknown) => {
    throw unusable(error, store, emergency);
  });
  return work({ ...found, config, store, emergency });

  async function read(): Promise<Reading> {
    const nothing = { state: null, now: terminal.clock.now() };
    const reading = isThere(config) ? await store.read() : nothing;
    const { state } = reading;
    if (state && recruitingUrl !== undefined && state.service !== recruitingUrl) {
      throw foreignStore(store, state, recruitingUrl);
    }
    // Without its folder nobody knows whether a newer pair waits.
    emergency.read();
    return reading;
  }
}

/** The token set of a store, held by a command as by any other process. Gateways may be running on the same store. */
export interface HeldTokens extends OpenStore {
  readonly holder: TokenHolder;
  readonly service: RecruitingTokens;
  readonly http: Dispatcher;
  readonly by: string;
  readonly print: (text: string) => void;
}

/**
 * Opens the store for `work`, and afterwards waits until a pair that was received is safe. Only `tokens import` makes a
 * store that is missing, or who finds a pair for it in an emergency file.
 */
export async function withHeldTokens(
  terminal: Terminal,
  work: (tokens: HeldTokens) => Promise<void>,
  { config = readSettings(terminal.env, terminal.readFile), creates = false } = {},
): Promise<void> {
  const { tokenStore, recruitingUrl } = config;
  const emergency = emergencyFor(config);
  const store = openTokenStore(tokenStore, config);
  const print = (text: string) => void terminal.stdout.write(`${text}\n`);
  const opened = await open().catch((error: unknown) => {
    throw error instanceof CommandError ? error : unusable(error, store, emergency);
  });
  const { holder } = opened;
  const stop = () => void holder.close();
  terminal.stop.addEventListener('abort', stop, { once: true });
  try {
    await work(opened);
  } finally {
    terminal.stop.removeEventListener('abort', stop);
    if (holder.facts.isUnsaved) terminal.stderr.write(`${TRYING_TO_SAVE}\n`);
    await holder.close();
  }
  if (holder.facts.isUnsaved) {
    throw new CommandError(
      `The new token pair could not be saved to the token store (${store.description}). It is in an emergency file ` +
        `(${emergency.pathOf(holder.state!)}): do not remove it. Repair the disk or the database, and run \`tokens recover\`, ` +
        'which saves it; the next start of a gateway does so too.',
    );
  }

  async function open(): Promise<HeldTokens> {
    const mayCreate = creates || isThere(config) || pathsIn(emergency).length > 0;
    if (!mayCreate) throw noTokens({ config, store });
    const serviceUrl = recruitingUrl ?? (await store.read()).state?.service ?? '';
    const http = proxyAgent(terminal.env);
    const log = await commandLog(config, terminal);
    const machine = terminal;
    const parts = holderParts(config, { store, emergency, serviceUrl, http, machine, log });
    const held = new TokenHolder(parts);
    const waiting = pathsIn(emergency);
    await held.look();
    for (const path of waiting) {
      if (!pathsIn(emergency).includes(path))
        print(`A pair that waited in an emergency file (${path}) is in the token store now.`);
    }
    const { service, by } = parts;
    return { config, store, emergency, holder: held, service, http, by, print };
  }
}

const TRYING_TO_SAVE =
  'The new token pair could not be saved to the token store. Saving is tried again for some seconds: do not kill this command.';

/** Explains to the operator why a store cannot be used, and which pairs wait for it on this machine. */
function unusable(error: unknown, store: TokenStore, emergency: Emergency): CommandError {
  const problem = storeProblem(error, store);
  const paths = pathsIn(emergency);
  const waiting =
    paths.length > 0 ? ` A pair waits in an emergency file (${paths.join(', ')}): keep it.` : '';
  return new CommandError(`${problem.message}${waiting}`, exitCodeOf(problem));
}

/** The emergency files, as far as the folder can be read. */
function pathsIn(emergency: Emergency): string[] {
  try {
    return emergency.read().map(({ path }) => path);
  } catch {
    return [];
  }
}

function isThere({ tokenStore }: Config): boolean {
  return tokenStore.kind === 'postgres' || existsSync(tokenStore.path);
}

/** Returns the error for a store without tokens. */
export function noTokens({ config, store }: Pick<OpenStore, 'config' | 'store'>): CommandError {
  const missing = isThere(config) ? '' : ', which does not exist';
  return new CommandError(
    `There are no tokens in the token store (${store.description}${missing}). ${STEPS.missing}`,
  );
}
