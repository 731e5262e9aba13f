import pino from 'pino';
import { readConfig } from '../config.ts';
import { OperatorMistake } from '../errors.ts';
import { TokenHolder } from '../tokens/holder.ts';
import type { State } from '../tokens/state.ts';
import { checkService, storeError } from '../tokens/store.ts';
import { keeperParts, openCustody, STEPS, type OpenCustody } from '../setup/custody.ts';
import type { Terminal } from './terminal.ts';

/** Reads the token store, and changes nothing. A gateway may change it at any moment. */
export async function readTokens({ env }: Terminal) {
  const config = readConfig(env, 'command');
  const custody = openCustody(config);
  const { store, emergency } = custody;
  try {
    const { state, now } = await store.read();
    if (config.recruitingUrl !== undefined) checkService(state, config.recruitingUrl);
    // Without its folder nobody knows whether a newer pair waits.
    return { ...custody, config, state, now, waiting: emergency.read() };
  } catch (error) {
    throw unusable(error, custody);
  }
}

/** The token set of a store, held by a command as by any other process. Gateways may be running on the same store. */
export type HeldTokens = Awaited<ReturnType<typeof hold>>;

async function hold(terminal: Terminal) {
  const { env, clock, stdout } = terminal;
  const { config, store, emergency, state: read } = await readTokens(terminal);
  const serviceUrl = config.recruitingUrl ?? read?.service;
  if (serviceUrl === undefined) throw new OperatorMistake(NO_SERVICE);
  const log = pino({ level: 'silent' });
  const parts = keeperParts(config, { store, emergency, serviceUrl, env, clock, log });
  const holder = new TokenHolder(parts);
  const state = await holder.look();
  const print = (text: string) => void stdout.write(`${text}\n`);
  return { ...parts, config, holder, state, print };
}

/** Holds the tokens for `work`, and afterwards waits until a pair that was received is safe. */
export async function withHeldTokens(
  terminal: Terminal,
  work: (tokens: HeldTokens) => Promise<void>,
): Promise<void> {
  const tokens = await hold(terminal);
  const { holder, store, emergency } = tokens;
  // Nothing is sent from then on.
  terminal.stop.addEventListener('abort', () => void holder.close());
  try {
    await work(tokens);
  } finally {
    if (holder.facts.isUnsaved) terminal.stderr.write(`${TRYING_TO_SAVE}\n`);
    await holder.close();
  }
  if (holder.facts.isUnsaved) {
    throw new Error(
      `The new token pair could not be saved to the token store (${store.description}). It is in an emergency file ` +
        `(${emergency.pathOf(holder.state!)}): do not remove it. Repair the disk or the database, and run \`tokens recover\`, ` +
        'which saves it; the next start of a gateway does so too.',
    );
  }
}

const NO_SERVICE =
  'RECRUITING_URL is not set, and the token store is empty. Put the base address of the service that the token set is for in ' +
  'front of the command: RECRUITING_URL=https://recruiting.example.com (with the host of your service). Nothing was changed.';

const TRYING_TO_SAVE =
  'The new token pair could not be saved to the token store. Saving is tried again until the pair is there or in an emergency file: ' +
  'repair the disk or the database, and do not kill this command.';

/** Explains to the operator why a store cannot be used, and which pairs wait for it on this machine. */
function unusable(error: unknown, { store, emergency }: OpenCustody): Error {
  const problem = storeError(error, store);
  try {
    const paths = emergency.read().map(({ path }) => path);
    if (paths.length > 0) {
      problem.message += ` A pair waits in an emergency file (${paths.join(', ')}): keep it.`;
    }
  } catch {
    // The folder cannot be read either.
  }
  return problem;
}

/** @throws Error if the store has no tokens */
export function present({ state, store }: Pick<HeldTokens, 'state' | 'store'>): State {
  if (state) return state;
  throw new Error(
    `There are no tokens in the token store (${store.description}). ${STEPS.missing}`,
  );
}
