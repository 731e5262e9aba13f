import { readFileSync } from 'node:fs';
import { addAbortSignal } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { foreignLink, isSecureUrl, readStoreAddress } from '../config/values.ts';
import { codeOf } from '../errors.ts';
import { storeError } from '../tokens/errors.ts';
import { causeOf, troublesOf, underWay, type Trouble } from '../tokens/health.ts';
import type { TokenHolder } from '../tokens/holder.ts';
import { readLink, readTokenSet } from '../tokens/link.ts';
import { parseJson, readPair, type Pair } from '../tokens/pair.ts';
import {
  CLAIM_MS,
  dueAt,
  fingerprintOf,
  isLive,
  moveTo,
  receiveMove,
  save,
  successor,
  type Imported,
  type Rule,
  type State,
} from '../tokens/state.ts';
import type { TokenStore } from '../tokens/store.ts';
import { openTokenStore } from '../setup/custody.ts';
import { lineOn } from '../setup/wording.ts';
import { CommandError, duration, printable, times, type Terminal } from './terminal.ts';
import { noTokens, withHeldTokens, type HeldTokens } from './tokens-store.ts';

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
  await withHeldTokens(terminal, async (tokens) => {
    const { config, holder, serviceUrl, store, print } = tokens;
    const pair = await readSource(source, tokens, terminal);
    const outcome = await holder.import(pair, replace);
    if (outcome !== 'imported') throw notImported(outcome, holder.state!);
    const name = pair.name === null ? 'without a name' : `"${printable(pair.name)}"`;
    const isEncrypted = config.tokenStoreKeys.length > 0;
    print(
      `Imported the token set ${name} of ${new URL(serviceUrl).host} (refresh token ${fingerprintOf(pair)}).\n` +
        `Token store: ${store.description}, ${isEncrypted ? 'encrypted with TOKEN_STORE_KEY' : 'not encrypted (TOKEN_STORE_KEY is not set)'}.`,
    );
    await finishImport(tokens, terminal);
  });
}

/** Refuses a link whose refresh token would be sent to another service. */
function checkLink(link: string, { config, serviceUrl }: HeldTokens): void {
  if (!isSecureUrl(link)) {
    throw new CommandError(
      'The link must begin with https:// (http:// is only for this machine). Nothing was sent or changed.',
      2,
    );
  }
  const { tokenLinkOrigin: origin } = config;
  const complaint = foreignLink(link, { recruitingUrl: serviceUrl, origin });
  if (complaint !== undefined) throw new CommandError(`The token link ${complaint}`, 2);
}

function isLink(text: string): boolean {
  return /^https?:\/\/\S+$/i.test(text);
}

async function readSource(source: string, tokens: HeldTokens, terminal: Terminal): Promise<Pair> {
  const given = isLink(source.trim()) ? source : await contentOf(source, terminal);
  const text = given.trim();
  if (!isLink(text)) return readTokenSet(text);
  checkLink(text, tokens);
  return readLink(text, { agent: tokens.config.agent, http: tokens.http });
}

async function contentOf(source: string, { stdin, stop }: Terminal): Promise<string> {
  if (source !== '-') {
    try {
      return readFileSync(source, 'utf8');
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
  return textOf(addAbortSignal(stop, stdin));
}

function notImported(outcome: Imported, { generation }: State): CommandError {
  return new CommandError(
    outcome === 'known'
      ? `The token store has already seen this refresh token: it is in use, or spent. Nothing was changed. ${NEW_LINK}`
      : `The token store holds a set (generation ${generation}) that is in use. Nothing was changed. \`tokens status\` prints its ` +
          'state, and what helps. To replace it, add --replace.',
  );
}

const NEW_LINK =
  'For another one, have an administrator make a new token in the personal account, and import its link.';

async function finishImport(tokens: HeldTokens, { clock }: Terminal): Promise<void> {
  const { holder, print } = tokens;
  const { set } = holder.state!;
  let refreshed = await exchange(tokens).catch((error: Error) => error);
  const wait = dueAt(holder.state!, holder.now, 0) - holder.now;
  if (holder.state!.refusals > 0 && wait < SOON_MS) {
    // A second refusal, a few seconds after the first, tells a spent refresh token from clocks that differ.
    await clock.sleep(wait);
    refreshed = await exchange(tokens, true).catch((error: Error) => error);
  }
  const { now } = holder;
  const state = holder.state!;
  if (!(refreshed instanceof Error) && state.set === set) {
    return print(
      `Refreshed at once: ${inUse(refreshed)} The link no longer works. A gateway that runs on this store uses the new ` +
        'access token within half a minute; otherwise, start one now.',
    );
  }
  if (state.set !== set || state.lost) {
    throw new CommandError(
      'The service refuses the refresh token of this set: it was spent before, or revoked. The import was withdrawn: what it had ' +
        `replaced, if anything, is in use again. ${NEW_LINK}`,
    );
  }
  if (state.refusals > 0 && now < state.expiresAt) {
    return print(
      `It was not refreshed yet. ${earlyOrSpent(state, now)} Until then the link works: keep it secret.`,
    );
  }
  throw new CommandError(
    `The set is in the store, but was not refreshed yet: ${(refreshed as Error).message} Without a gateway, run ` +
      '`tokens refresh`. Do not import it again.',
  );
}

const SOON_MS = 10_000;

/** Refreshes once, or waits for the refresh of another process. */
export async function tokensRefresh(_options: object, terminal: Terminal): Promise<void> {
  await withHeldTokens(terminal, async (tokens) => {
    const { holder, print } = tokens;
    const state = held(tokens);
    const obstacle = troubleIn(holder, ['missing', 'lost', 'uncertain']);
    if (obstacle) throw nothingSent(lineOn(obstacle, state));
    print(`Refreshed: ${inUse(await exchange(tokens))}`);
  });
}

function held(tokens: HeldTokens): State {
  const { state } = tokens.holder;
  if (!state) throw noTokens(tokens);
  return state;
}

/** The first of these troubles that the held set has. */
function troubleIn({ state, facts }: TokenHolder, troubles: readonly Trouble[]) {
  const found = troublesOf(state, facts);
  return troubles.find((trouble) => found.includes(trouble));
}

function nothingSent(why: string): CommandError {
  return new CommandError(`Nothing was sent. ${why}`);
}

/** What a refusal means that is no loss yet. */
function earlyOrSpent({ expiresAt }: State, now: number): string {
  const left = expiresAt > now ? `, in ${duration((expiresAt - now) / 1000)} at most` : '';
  return (
    'The service refuses the refresh token: as too early, or as spent. ' +
    `A running gateway sends it right after the expiry${left}, and for the last time ten minutes later, which shows what is true; \`tokens recover\` does so then. ` +
    'If you know that the tokens were revoked, import a new link with --replace.'
  );
}

/**
 * Exchanges the refresh token, if it may be sent now.
 *
 * @param recovers sends one that was refused, or is lost by all that is known
 * @throws CommandError that says what helps
 */
async function exchange({ holder }: HeldTokens, recovers = false): Promise<State> {
  const { now } = holder;
  const state = holder.state!;
  const isFree = recovers || (state.refusals === 0 && !state.refusesEarly);
  const wait = (isFree ? state.notBefore : dueAt(state, now, 0)) - now;
  if (wait > 0) {
    throw nothingSent(
      'The service refuses earlier refreshes, has refused this one, or asked for a pause: the next refresh is due in ' +
        `${duration(Math.ceil(wait / 1000))}. A running gateway sends it then; otherwise run this again.`,
    );
  }
  return holder.exchange({ evenIfLost: recovers }).catch((error: unknown) => {
    throw notExchanged(error as Error, holder, recovers);
  });
}

/** Says why there is no new pair, and what helps. */
function notExchanged(error: Error, holder: TokenHolder, recovers: boolean): Error {
  const { state, now } = holder;
  if (!state || codeOf(error) === 'INTERNAL_SERVER_ERROR') return error;
  const { refusals } = state;
  const trouble = troubleIn(holder, [
    'missing',
    'lost',
    ...(recovers ? [] : ['uncertain' as const]),
  ]);
  if (trouble) return new CommandError(lineOn(trouble, state));
  return new CommandError(refusals > 0 ? earlyOrSpent(state, now) : error.message);
}

function inUse({ generation, pair }: State): string {
  return (
    `generation ${generation} is in use. Its access token lives for ${duration(pair.expiresIn)}, its refresh token for ` +
    `${duration(pair.refreshTokenExpiresIn)}.`
  );
}

/** Resolves an uncertain refresh, and tries everything that may still give a pair. */
export async function tokensRecover(_options: object, terminal: Terminal): Promise<void> {
  await withHeldTokens(terminal, async (tokens) => {
    const { holder, service, print } = tokens;
    const state = held(tokens);
    const { now } = holder;
    const { claim, refusals, movedTo, generation } = state;
    if (movedTo !== null) throw nothingSent(lineOn('missing', state));
    if (isLive(claim, now)) throw nothingSent(underWay(claim!));
    const trouble = troubleIn(holder, ['lost', 'uncertain']);
    if (!trouble && refusals === 0) {
      return print(
        `Nothing is left to recover: generation ${generation} is in use. \`tokens check\` shows whether it works.`,
      );
    }
    print(
      trouble
        ? causeOf(trouble, state)
        : `The service has refused the refresh token ${times(refusals)}: too early, or spent.`,
    );
    if (await saveKeptAnswer(tokens, state)) return;
    const verdict = await service.check(state.pair.accessToken);
    const isEarly = state.refusesEarly || refusals > 0;
    if (verdict.kind === 'works' && trouble !== 'lost' && isEarly) {
      return print(earlyOrSpent(state, now));
    }
    print('The refresh token is sent once more …');
    print(`It worked, so nothing was lost: ${inUse(await exchange(tokens, true))}`);
  });
}

/** Saves the pair in an answer that was not understood, if the service accepts its access token. */
async function saveKeptAnswer(tokens: HeldTokens, state: State): Promise<boolean> {
  const { holder, service, by, print } = tokens;
  if (state.answer === null) return false;
  const pair = readPair(parseJson(state.answer), state.pair);
  const isNew = pair && pair.accessToken !== state.pair.accessToken;
  if (!isNew || (await service.check(pair.accessToken)).kind !== 'works') {
    print('An answer of the service is kept, and holds no pair that the service accepts.');
    return false;
  }
  const at = state.claim ? state.claim.until - CLAIM_MS : holder.now;
  // What was refused before was spent, which says nothing about early refreshes.
  const next = { ...successor(state, pair, at), refusesEarly: state.refusesEarly };
  await holder.update(save(next, by));
  print(
    `An answer of the service is kept, and the service accepts its access token, so nothing was lost: ${inUse(holder.state!)} ` +
      'The refresh token before it was not sent again.',
  );
  return true;
}

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
    await move(tokens, state, other);
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
async function move({ holder, by }: HeldTokens, state: State, other: TokenStore): Promise<void> {
  const place = async (rule: Rule<'placed' | 'in use'>) => {
    const outcome = await other.update(rule).catch((error: unknown) => {
      throw storeError(error, other);
    });
    if (outcome === 'placed') return;
    throw new CommandError(
      `The store ${other.description} has a token set that is in use. Nothing was changed there. Move the set to an empty store.`,
    );
  };
  // Reading alone would not show whether it can be written.
  await place((there, now) => ({ result: receiveMove(state, by)(there, now).result }));
  const given = await holder.update(moveTo(other.description, by));
  if (given) return place(receiveMove(given, by));
  const trouble = troubleIn(holder, ['missing', 'lost', 'uncertain']);
  const { claim } = holder.state!;
  throw new CommandError(
    `Nothing was moved. ${trouble ? lineOn(trouble, holder.state) : underWay(claim!)}`,
  );
}
