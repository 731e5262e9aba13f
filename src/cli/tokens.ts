import { existsSync, readFileSync } from 'node:fs';
import type { Dispatcher } from 'undici';
import type { Config } from '../config.ts';
import { foreignLink, isSecureUrl, readStoreAddress } from '../config/values.ts';
import { movedError, NEW_SET } from '../tokens/errors.ts';
import { ADVICE } from '../tokens/health.ts';
import { TokenHolder } from '../tokens/holder.ts';
import { readLink, readTokenFile } from '../tokens/link.ts';
import { parseJson, readPair, type Pair } from '../tokens/pair.ts';
import { proxyAgent, type TokenService, type Verdict } from '../tokens/service.ts';
import {
  CLAIM_MS,
  dueAt,
  fingerprintOf,
  isLive,
  isLost,
  isUncertain,
  moveTo,
  pausedUntil,
  receiveMove,
  save,
  successor,
  type Imported,
  type Move,
  type State,
} from '../tokens/state.ts';
import type { TokenStore } from '../tokens/store.ts';
import { codeOf } from '../errors.ts';
import { emergencyFor, openTokenStore, storeProblem, tokenParts } from '../setup/custody.ts';
import {
  CommandError,
  commandLog,
  duration,
  exitCodeOf,
  printable,
  stopped,
  type Terminal,
} from './terminal.ts';
import { CUT_OFF, noTokens, readTokenConfig, times, type ReadTokens } from './tokens-status.ts';

/** The token set of a store, held by a command as by any other process. Gateways may be running on the same store. */
interface HeldTokens extends Omit<ReadTokens, 'state' | 'now'> {
  readonly holder: TokenHolder;
  readonly service: TokenService;
  readonly http: Dispatcher;
  readonly by: string;
  readonly print: (text: string) => void;
}

/**
 * Opens the store for `work`, and afterwards waits until a pair that was received is safe. Only `tokens import` makes a
 * store that is missing, or who finds a pair for it in an emergency file.
 *
 * @param onClosed what follows from a store that cannot be used, for the operator
 */
async function withHeldTokens(
  terminal: Terminal,
  work: (tokens: HeldTokens) => Promise<void>,
  {
    config = readTokenConfig(terminal, { refusesUnknown: true }),
    creates = false,
    onClosed = '',
  } = {},
): Promise<void> {
  const { tokenStore, recruitingUrl } = config;
  const print = (text: string) => void terminal.stdout.write(`${text}\n`);
  const warn = (text: string) => void terminal.stderr.write(`${text}\n`);
  const http = proxyAgent(terminal.env);
  const emergency = emergencyFor(config);
  const isMissing = tokenStore.kind === 'sqlite' && !existsSync(tokenStore.path);
  const readOnly = isMissing && !creates && emergency.read().length === 0;
  const store = openTokenStore(tokenStore, config, { readOnly });
  try {
    const opened = await opening();
    const { holder } = opened;
    const stop = () => void holder.close();
    terminal.stop.addEventListener('abort', stop, { once: true });
    try {
      await work(opened);
    } finally {
      terminal.stop.removeEventListener('abort', stop);
      if (holder.facts.isUnsaved) warn(TRYING_TO_SAVE);
      await holder.close();
    }
    if (holder.facts.isUnsaved) {
      const path = emergency.pathOf(holder.state!);
      throw new CommandError(
        `The new token pair could not be saved to the token store (${store.description}). It is in an emergency file (${path}): do not remove ` +
          'it. Repair the disk or the database, and run `tokens recover`, which saves it; the next start of a gateway does so too.',
      );
    }
  } finally {
    await store.close();
  }

  async function opening(): Promise<HeldTokens> {
    try {
      const serviceUrl = recruitingUrl ?? (await store.read()).state?.service ?? '';
      const log = await commandLog(config, terminal);
      const parts = tokenParts(config, { store, serviceUrl, http, machine: terminal, log });
      const holder = new TokenHolder(parts);
      const waiting = emergency.read();
      await holder.look();
      const remaining = new Set(emergency.read().map(({ path }) => path));
      for (const { path } of waiting.filter((file) => !remaining.has(file.path))) {
        print(`A pair that waited in an emergency file (${path}) is in the token store now.`);
      }
      const { service, by } = parts;
      return { config, store, emergency, holder, service, http, by, print };
    } catch (error) {
      const problem = storeProblem(error, store);
      throw new CommandError(`${problem.message}${onClosed}`, exitCodeOf(problem));
    }
  }
}

const TRYING_TO_SAVE =
  'The new token pair could not be saved to the token store. Saving is tried again for some seconds: do not kill this command.';

/** Returns what is held. An emergency file that cannot be read may hold the next pair. */
function held(tokens: HeldTokens): State {
  const { holder, emergency } = tokens;
  for (const file of emergency.read()) {
    if (!('why' in file)) continue;
    throw new CommandError(
      `The emergency file ${file.path} may hold the newest pair, and cannot be read: ${file.why}. Nothing was sent. Correct that ` +
        '(TOKEN_STORE_KEY as the gateway has it, permissions), and run this again; only if the file belongs to another ' +
        'store, move it elsewhere first.',
    );
  }
  const { state } = holder;
  if (!state) throw noTokens(tokens);
  return state;
}

/** Tells the operator why a call of a store failed. */
function explained<T>(store: TokenStore, call: Promise<T>): Promise<T> {
  return call.catch((error: unknown) => {
    throw storeProblem(error, store);
  });
}

/**
 * Imports a token set and exchanges it at once: that ends the link, starts both lifetimes, and shows any problem while
 * the operator watches.
 *
 * @param source the one-time link, a file, or `-`; file and standard input hold the link or the JSON behind it
 */
export async function tokensImport(
  { source, replace }: { source: string; replace: boolean },
  terminal: Terminal,
): Promise<void> {
  const config = readTokenConfig(terminal, { refusesUnknown: true });
  const { recruitingUrl } = config;
  if (recruitingUrl === undefined) throw new CommandError(NO_SERVICE, 2);
  if (isLink(source)) checkLink(source, config);
  const work = async (tokens: HeldTokens) => {
    const { holder, store, print } = tokens;
    const before = holder.state;
    if (before && before.movedTo === null && !isLost(before, holder.now) && !replace)
      throw inUse(before);
    const pair = await readSource(source, tokens, terminal);
    const outcome = await holder.import(pair, replace).catch((error: unknown) => {
      throw new CommandError(
        `${storeProblem(error, store).message} It may have been imported all the same: check \`tokens status\`. The link still works.`,
      );
    });
    if (outcome !== 'imported') throw notImported(outcome, holder.state!);
    const name = pair.name === null ? 'without a name' : `"${printable(pair.name)}"`;
    const isEncrypted = config.tokenStoreKeys.length > 0;
    print(
      `Imported the token set ${name} of ${new URL(recruitingUrl).host} (refresh token ${fingerprintOf(pair)}).\n` +
        `Token store: ${store.description}, ${isEncrypted ? 'encrypted with TOKEN_STORE_KEY' : 'not encrypted (TOKEN_STORE_KEY is not set)'}.`,
    );
    await finishImport(tokens, before, terminal);
  };
  await withHeldTokens(terminal, work, { config, creates: true, onClosed: NOTHING_IMPORTED });
}

const NO_SERVICE =
  'RECRUITING_URL is not set. Put the base address of the service that the token set is for in front of the command: ' +
  'RECRUITING_URL=https://recruiting.example.com (with the host of your service). Nothing was changed.';

const NOTHING_IMPORTED = ' Nothing was imported, and the link still works.';

/** Refuses a link whose refresh token would be sent to another service. */
function checkLink(link: string, { recruitingUrl, tokenLinkOrigin: origin }: Config): void {
  if (!isSecureUrl(link)) {
    throw new CommandError(
      'The link must begin with https:// (http:// is only for this machine). Nothing was sent or changed.',
      2,
    );
  }
  const complaint = foreignLink(link, { recruitingUrl: recruitingUrl!, origin });
  if (complaint !== undefined) throw new CommandError(`The token link ${complaint}`, 2);
}

function isLink(text: string): boolean {
  return /^https?:\/\/\S+$/i.test(text);
}

function inUse({ pair, service, generation, claim, imported, refusals }: State): CommandError {
  const name = pair.name === null ? '' : ` "${printable(pair.name)}"`;
  const isUnfinished = imported && claim === null && refusals === 0;
  return new CommandError(
    `The token store holds a set${name} of ${new URL(service).host} (generation ${generation}) that is in use. Nothing was changed. ` +
      (claim?.unclear != null ? 'A refresh of it is uncertain: run `tokens recover` first. ' : '') +
      (isUnfinished
        ? 'It was imported before, and not refreshed yet: run `tokens refresh` to finish that. '
        : '') +
      'To replace it, add --replace.',
  );
}

function notImported(outcome: Exclude<Imported, 'imported'>, state: State): CommandError {
  if (outcome === 'in use') return inUse(state);
  return new CommandError(
    'The token store has already seen this refresh token: it is in use, or spent. Nothing was changed. To get another one, ' +
      NEW_SET,
  );
}

async function readSource(
  source: string,
  { config, http }: HeldTokens,
  terminal: Terminal,
): Promise<Pair> {
  const bytes = isLink(source) ? Buffer.from(source) : await contentOf(source, terminal);
  const text = new TextDecoder().decode(bytes).trim();
  if (!isLink(text)) return readTokenFile(bytes);
  checkLink(text, config);
  return readLink(text, { agent: config.agent, http });
}

/** At most slightly more than a token set may have. */
async function contentOf(source: string, { stdin, stop }: Terminal): Promise<Buffer> {
  if (source !== '-') {
    try {
      return readFileSync(source);
    } catch (error) {
      const { code } = error as { code?: string };
      // The source is not shown, because it may be the link without its beginning, or the JSON.
      throw new CommandError(
        `What was given is not a link that begins with https://, and cannot be read as a file (${code ?? 'unknown error'}). ` +
          'Give the whole one-time link, a file, or - for standard input. Nothing was changed.',
        2,
      );
    }
  }
  const interrupted = stopped(stop).then(() => {
    throw new CommandError('Stopped before anything was read. Nothing was changed.');
  });
  return Promise.race([readAll(stdin), interrupted]);
}

async function readAll(stdin: Terminal['stdin']): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk as Uint8Array));
    size += chunks.at(-1)!.length;
    if (size > LARGEST_SOURCE) break;
  }
  return Buffer.concat(chunks);
}

const LARGEST_SOURCE = 64 * 1024;

/** @param before what the import replaced */
async function finishImport(tokens: HeldTokens, before: State | null, terminal: Terminal) {
  const { holder, print } = tokens;
  const { set } = holder.state!;
  const refreshed = await exchangeTwice(tokens, terminal).catch((error: Error) => error);
  const { state, now } = holder;
  if (state!.set !== set) throw new CommandError(spent(before && state));
  if (!(refreshed instanceof Error)) {
    return print(
      `Refreshed at once: ${inUseNow(refreshed)} The link no longer works. A gateway that runs on this store uses the new ` +
        'access token within half a minute; otherwise, start one now.',
    );
  }
  if (state!.lost) throw new CommandError(spent(null));
  if (state!.refusals > 0 && now < state!.expiresAt) return print(TOO_EARLY_OR_SPENT);
  throw new CommandError(
    isUncertain(state!, now)
      ? `The set is in the store, but its first refresh got no clear answer. ${ADVICE.uncertain}`
      : `The set is in the store, but was not refreshed yet, so the link still works: ${refreshed.message} ` +
          'Without a gateway, run `tokens refresh`. Do not import it again.',
  );
}

/** A second refusal, a few seconds after the first, tells a spent refresh token from clocks that differ. */
async function exchangeTwice({ holder }: HeldTokens, { clock, stop }: Terminal): Promise<State> {
  try {
    return await holder.exchange();
  } catch (error) {
    const { state, now } = holder;
    if (!state || state.refusals === 0 || isLost(state, now)) throw error;
    const wait = dueAt(state, now, 0) - now;
    if (wait > SOON_MS) throw error;
    await clock.sleep(Math.max(0, wait), stop);
    return holder.exchange();
  }
}

/** How long a command waits until a refresh token may be sent again. */
const SOON_MS = 10_000;

/** @param back what is in use again */
function spent(back: State | null): string {
  return (
    'The service refuses the refresh token of this set: it was spent before, or revoked. ' +
    (back
      ? `The import was withdrawn: what it had replaced is in use again, as generation ${back.generation}. To replace it, `
      : 'No set is in use now: ') +
    NEW_SET
  );
}

const TOO_EARLY_OR_SPENT =
  'It was not refreshed yet: the service refused the refresh token, and not the access token. Either it exchanges none before ' +
  'the access token has expired, or the refresh token is spent. A running gateway sends it again right after the expiry, which ' +
  'shows what is true: start one now, or keep it running. Until then the link works: keep it secret.';

function inUseNow({ generation, pair }: State): string {
  return (
    `generation ${generation} is in use. Its access token lives for ${duration(pair.expiresIn)}, its refresh token for ` +
    `${duration(pair.refreshTokenExpiresIn)}.`
  );
}

/** Refreshes once, or waits for the refresh of another process. */
export async function tokensRefresh(_options: object, terminal: Terminal): Promise<void> {
  await withHeldTokens(terminal, async (tokens) => {
    const { holder, print } = tokens;
    const state = held(tokens);
    holder.usable();
    if (isUncertain(state, holder.now))
      throw new CommandError(`Nothing was sent. ${ADVICE.uncertain}`);
    if (state.refusesEarly || state.refusals > 0) {
      const verdict = await askAccess(tokens, state);
      if (verdict.kind === 'works') throw new CommandError(tooEarly(state, holder.now));
    }
    const newest = holder.state!;
    await waitUntil(newest.refusals > 0 ? dueAt(newest, holder.now, 0) : 0, tokens, terminal);
    const refreshed = await holder.exchange().catch((error: Error) => {
      const { refusals, claim, lost } = holder.state!;
      if (claim?.unclear != null)
        throw new CommandError(`The refresh token was sent. ${ADVICE.uncertain}`);
      throw refusals > 0 && !lost
        ? new CommandError(
            `${REFUSED} \`tokens recover\` asks the service about the access token, and says what helps.`,
          )
        : error;
    });
    print(`Refreshed: ${inUseNow(refreshed)}`);
  });
}

/** The store's clock says that an access token has expired, or the service says so. */
async function askAccess({ holder, service }: HeldTokens, state: State): Promise<Verdict> {
  const verdict = await service.check(state.pair.accessToken);
  if (verdict.kind === 'refused') await holder.expire(state);
  return verdict;
}

function tooEarly({ refusesEarly, expiresAt }: State, now: number): string {
  const left = Math.max(0, expiresAt - now) / 1000;
  return (
    'Nothing was sent: the access token works, and this service ' +
    (refusesEarly
      ? 'exchanges no refresh token before the access token has expired. '
      : 'has refused the refresh token already: as too early, or as spent. ') +
    `A running gateway sends it right after the expiry${left > 0 ? `, in ${duration(left)} at most` : ''}: start one, or keep it running.`
  );
}

/** Waits a few seconds until a refresh token may be sent. @throws CommandError if that is later */
async function waitUntil(
  at: number,
  { holder }: HeldTokens,
  { clock, stop }: Terminal,
): Promise<void> {
  const { now } = holder;
  const wait = Math.max(at, pausedUntil(holder.state!, now)) - now;
  if (wait <= 0) return;
  if (wait > SOON_MS) {
    throw new CommandError(
      `Nothing was sent: the service refused the last refresh, and the next one is due in ${duration(Math.ceil(wait / 1000))}. ` +
        'A running gateway sends it then; otherwise run this again.',
    );
  }
  await clock.sleep(wait, stop).catch(() => {
    throw new CommandError('Stopped. Nothing was sent.');
  });
}

/** Resolves an uncertain refresh, and tries everything that may still give a pair. */
export async function tokensRecover(_options: object, terminal: Terminal): Promise<void> {
  await withHeldTokens(terminal, async (tokens) => {
    const { holder, print } = tokens;
    const state = held(tokens);
    const { now } = holder;
    if (state.movedTo !== null) throw movedError(state.movedTo);
    if (isLive(state.claim, now)) throw new CommandError(UNDER_WAY);
    const isLostNow = isLost(state, now);
    if (!isUncertain(state, now) && !isLostNow && state.refusals === 0) {
      return print(`There is nothing to recover: generation ${state.generation} is in use.`);
    }
    print(story(state, now));
    if (await saveKeptAnswer(tokens, state)) return;
    const verdict = await askAccess(tokens, state);
    print(ACCESS[verdict.kind]);
    if (verdict.kind === 'works' && !isLostNow && (state.refusesEarly || state.refusals > 0)) {
      return print(tooEarly(state, now));
    }
    if (verdict.kind === 'unclear' && now < state.expiresAt) {
      throw new CommandError(
        `The service cannot be asked now (${verdict.why}), so nothing was sent. Run \`tokens recover\` again when it works.`,
      );
    }
    await waitUntil(0, tokens, terminal);
    await sendOnceMore(tokens);
  });
}

const UNDER_WAY =
  'A process is exchanging the refresh token at this moment. Nothing was sent. Run this again in three minutes.';

const ACCESS = {
  works: 'The service accepts the access token.',
  refused: 'The service refuses the access token.',
  unclear: 'The access token has expired, and the service gives no clear answer about it.',
} as const;

function story(state: State, now: number): string {
  const { claim, lost, refusals } = state;
  if (lost) return 'The service has refused the refresh token for good.';
  if (isLost(state, now)) {
    return 'The refresh token has ended by the clock of the token store. That clock may be wrong, so the service may still accept it.';
  }
  if (claim) {
    const why = claim.unclear ?? CUT_OFF;
    return (
      `The refresh of generation ${state.generation} by ${claim.by} is uncertain: ${why}. If the service has not processed it, ` +
      'the refresh token still works; otherwise it is spent.'
    );
  }
  return `The service has refused the refresh token ${times(refusals)}: too early, or spent.`;
}

/** Saves the pair in an answer that was not understood, if the service accepts its access token. */
async function saveKeptAnswer(tokens: HeldTokens, state: State): Promise<boolean> {
  const { holder, service, store, by, print } = tokens;
  if (state.answer === null) return false;
  const pair = pairIn(parseJson(state.answer), state.pair);
  if (!pair) {
    print('An answer of the service is kept, and holds no pair that can be read.');
    return false;
  }
  const verdict = await service.check(pair.accessToken);
  if (verdict.kind !== 'works') {
    print('An answer of the service is kept, and the service does not accept its access token.');
    return false;
  }
  const age = state.claim ? Math.max(0, holder.now - (state.claim.until - CLAIM_MS)) : 0;
  // What was refused before was spent, which says nothing about early refreshes.
  const next = { ...successor(state, pair), refusesEarly: state.refusesEarly };
  await explained(store, store.update(save(next, age, by)));
  await explained(store, holder.look());
  print(
    `An answer of the service is kept, and the service accepts its access token, so nothing was lost: ${inUseNow(holder.state!)} ` +
      'The refresh token before it was not sent again.',
  );
  return true;
}

/** Also one level down, as some proxies wrap an answer. */
function pairIn(document: unknown, before: Pair): Pair | undefined {
  const nested = typeof document === 'object' && document !== null ? Object.values(document) : [];
  for (const each of [document, ...nested]) {
    const pair = readPair(each, before);
    if (pair && pair.accessToken !== before.accessToken) return pair;
  }
  return undefined;
}

async function sendOnceMore({ holder, print }: HeldTokens): Promise<void> {
  print('The refresh token is sent once more …');
  try {
    const state = await holder.exchange({ evenIfLost: true });
    print(`It worked, so nothing was lost: ${inUseNow(state)}`);
  } catch (error) {
    const state = holder.state!;
    if (codeOf(error) === 'TOKENS_LOST') throw new CommandError(`${UNRECOVERABLE}${NEW_SET}`);
    if (isUncertain(state, holder.now)) {
      throw new CommandError(`There was no clear answer again. ${ADVICE.uncertain}`);
    }
    if (state.refusals === 0 || isLost(state, holder.now)) throw error;
    const isExpired = holder.now >= state.expiresAt;
    throw new CommandError(isExpired ? BOTH_REFUSED : `${REFUSED} ${SENT_AFTER_EXPIRY}`);
  }
}

const REFUSED = 'The service refused the refresh token: as too early, or as spent.';

const SENT_AFTER_EXPIRY =
  'Callers are served while the access token works. A running gateway sends the refresh token again right after the expiry, ' +
  'which shows what is true; `tokens recover` does so then.';

const BOTH_REFUSED =
  'The service refuses both tokens, so callers get errors. Its clocks may differ: a running gateway sends the refresh token again ' +
  'for eleven minutes, and then reports that the tokens are lost. If you know that they were revoked or spent, have an ' +
  'administrator make a new token now, and run `tokens import <link> --replace`.';

const UNRECOVERABLE =
  'The service refuses the refresh token, and no other pair was found: it cannot be recovered. Callers are served for as ' +
  'long as the access token works. To end this, ';

/** Moves the set to another store. Afterwards this one refuses to refresh it. */
export async function tokensExport(
  { store: address }: { store: string },
  terminal: Terminal,
): Promise<void> {
  const target = readStoreAddress(address);
  if (!target) throw new CommandError(NO_ADDRESS, 2);
  await withHeldTokens(terminal, async (tokens) => {
    const state = held(tokens);
    const other = openTokenStore(target, tokens.config);
    try {
      await move(tokens, state, other);
    } finally {
      await other.close();
    }
    const setting = target.kind === 'sqlite' ? `=${other.description}` : ' to its address';
    tokens.print(
      `The token set is in ${other.description} now, and ${tokens.store.description} refuses to refresh it. Set TOKEN_STORE${setting} for ` +
        'every gateway that used the other, and restart them.',
    );
  });
}

const NO_ADDRESS =
  'That is not the address of a store; give sqlite:<file>, such as sqlite:/var/lib/recruiting/tokens.db, or ' +
  'postgres://<user>:<password>@<host>/<database>. Nothing was changed.';

/** Gives the set away before the other store gets it: it never has two owners. Repeated, it finishes a move. */
async function move({ holder, store, by }: HeldTokens, state: State, other: TokenStore) {
  // Reading alone would not show whether it can be written.
  const there = await explained(
    other,
    other.update((found, now) => ({
      result: { id: found?.id, now, outcome: receiveMove(state, 0, by)(found, now).result },
    })),
  );
  if (there.id === state.id) throw new CommandError(SAME_STORE, 2);
  if (there.outcome === 'in use') throw new CommandError(targetInUse(other));
  const behind = holder.now - there.now;
  const given = await explained(store, store.update(moveTo(other.description, by)));
  if (given.kind === 'elsewhere') throw new CommandError(movedError(given.movedTo).message);
  if (given.kind !== 'moved') throw new CommandError(`Nothing was moved. ${NOT_MOVED[given.kind]}`);
  const outcome = await other
    .update(receiveMove(given.state, behind, by))
    .catch((error: unknown) => {
      throw new CommandError(
        `${storeProblem(error, other).message} The set is between the two stores: run the same command again, which finishes the move.`,
      );
    });
  if (outcome === 'in use') throw new CommandError(targetInUse(other));
}

const SAME_STORE =
  'That is the store that TOKEN_STORE names, or a copy of it. Nothing was changed. Give the address of another one.';

function targetInUse({ description }: TokenStore): string {
  return `The store ${description} has a token set that is in use. Nothing was changed there. Move the set to an empty store.`;
}

const NOT_MOVED: Record<Exclude<Move['kind'], 'moved' | 'elsewhere'>, string> = {
  empty: ADVICE.missing,
  lost: ADVICE.lost,
  'under way':
    'A process is exchanging the refresh token at this moment: run this again in three minutes.',
  uncertain: 'A refresh got no clear answer: run `tokens recover` first.',
};
