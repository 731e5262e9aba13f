import type { Dispatcher } from 'undici';
import { readSettings, type Config } from '../config.ts';
import type { Emergency } from '../tokens/emergency.ts';
import { storeError } from '../tokens/errors.ts';
import { TokenHolder } from '../tokens/holder.ts';
import type { RecruitingTokens } from '../tokens/service.ts';
import { checkService, type Reading, type TokenStore } from '../tokens/store.ts';
import { emergencyFor, holderParts, openTokenStore } from '../setup/custody.ts';
import { STEPS } from '../setup/wording.ts';
import { CommandError, commandLog, exitCodeOf, type Terminal } from './terminal.ts';

interface OpenStore {
  readonly config: Config;
  readonly store: TokenStore;
  readonly emergency: Emergency;
}

function openStore(terminal: Terminal): OpenStore {
  const config = readSettings(terminal.env, terminal.readFile);
  const store = openTokenStore(config.tokenStore, config);
  return { config, store, emergency: emergencyFor(config) };
}

/** A token store as it is. A gateway may change it at any moment. */
export interface ReadTokens extends Reading, OpenStore {}

/** Reads the token store, and changes nothing. */
export async function readTokens(terminal: Terminal): Promise<ReadTokens> {
  const opened = openStore(terminal);
  const { config, store, emergency } = opened;
  try {
    const reading = await store.read();
    if (config.recruitingUrl !== undefined) checkService(reading.state, config.recruitingUrl);
    // Without its folder nobody knows whether a newer pair waits.
    emergency.read();
    return { ...reading, ...opened };
  } catch (error) {
    throw unusable(error, opened);
  }
}

/** The token set of a store, held by a command as by any other process. Gateways may be running on the same store. */
export interface HeldTokens extends OpenStore {
  readonly holder: TokenHolder;
  readonly serviceUrl: string;
  readonly service: RecruitingTokens;
  readonly http: Dispatcher;
  readonly by: string;
  readonly print: (text: string) => void;
}

/** Holds the tokens for `work`, and afterwards waits until a pair that was received is safe. */
export async function withHeldTokens(
  terminal: Terminal,
  work: (tokens: HeldTokens) => Promise<void>,
): Promise<void> {
  const opened = openStore(terminal);
  const { config, store, emergency } = opened;
  const print = (text: string) => void terminal.stdout.write(`${text}\n`);
  const log = await commandLog(config, terminal);
  const { holder, serviceUrl, service, http, by } = await hold().catch((error: unknown) => {
    throw error instanceof CommandError ? error : unusable(error, opened);
  });
  const stop = () => void holder.close();
  terminal.stop.addEventListener('abort', stop, { once: true });
  try {
    await work({ ...opened, holder, serviceUrl, service, http, by, print });
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

  async function hold() {
    const url = config.recruitingUrl ?? (await store.read()).state?.service;
    if (url === undefined) throw new CommandError(NO_SERVICE, 2);
    const machine = terminal;
    const parts = holderParts(config, { store, emergency, serviceUrl: url, machine, log });
    const held = new TokenHolder(parts);
    await held.look();
    return { ...parts, holder: held };
  }
}

const NO_SERVICE =
  'RECRUITING_URL is not set, and the token store is empty. Put the base address of the service that the token set is for in ' +
  'front of the command: RECRUITING_URL=https://recruiting.example.com (with the host of your service). Nothing was changed.';

const TRYING_TO_SAVE =
  'The new token pair could not be saved to the token store. Saving is tried again for some seconds: do not kill this command.';

/** Explains to the operator why a store cannot be used, and which pairs wait for it on this machine. */
function unusable(error: unknown, { store, emergency }: OpenStore): CommandError {
  const problem = storeError(error, store);
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

/** Returns the error for a store without tokens. */
export function noTokens({ store }: OpenStore): CommandError {
  return new CommandError(
    `There are no tokens in the token store (${store.description}). ${STEPS.missing}`,
  );
}
