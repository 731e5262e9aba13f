import { addAbortSignal } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { foreignLink, isSecureUrl, readStoreAddress } from '../config/values.ts';
import { codeOf, OperatorMistake } from '../errors.ts';
import { openTokenStore, STEPS } from '../setup/custody.ts';
import { causeOf, lineOn, troublesOf, underWay, type Trouble } from '../tokens/health.ts';
import type { TokenHolder } from '../tokens/holder.ts';
import { readLink, readTokenSet } from '../tokens/service.ts';
import type { Pair } from '../tokens/pair.ts';
import {
  CLAIM_MS,
  dueAt,
  fingerprintOf,
  isLive,
  moveTo,
  pairIn,
  receiveMove,
  save,
  successor,
  type Rule,
  type State,
} from '../tokens/state.ts';
import { duration, type Terminal } from './terminal.ts';
import { storeError } from '../tokens/store.ts';
import { present, withHeldTokens, type HeldTokens } from './tokens-store.ts';

/**
 * Imports a token set and exchanges it at once: that ends the link, starts both lifetimes, and shows any problem while
 * the operator watches.
 *
 * @param source the one-time link, or `-` for a standard input with it, or with the JSON behind it
 */
export async function tokensImport(
  source: string,
  { replace }: { replace: boolean },
  terminal: Terminal,
): Promise<void> {
  await withHeldTokens(terminal, async (tokens) => {
    const { config, holder, serviceUrl, store, print } = tokens;
    const pair = await readSource(source, tokens, terminal);
    const outcome = await holder.import(pair, replace);
    if (outcome === 'known') {
      throw new Error(
        `The token store has already seen this refresh token: it is in use, or spent. Nothing was changed. ${NEW_LINK}`,
      );
    }
    if (outcome === 'in use') {
      throw new Error(
        `The token store holds a set (generation ${holder.state!.generation}) that is in use. Nothing was changed. ` +
          '`tokens status` prints its state, and what helps. To replace it, add --replace.',
      );
    }
    const isEncrypted = config.tokenStoreKeys.length > 0;
    print(
      `Imported the token set of ${new URL(serviceUrl).host} (refresh token ${fingerprintOf(pair)}).\n` +
        `Token store: ${store.description}, ${isEncrypted ? 'encrypted with TOKEN_STORE_KEY' : 'not encrypted (TOKEN_STORE_KEY is not set)'}.`,
    );
    await finishImport(tokens, terminal);
  });
}

const NEW_LINK =
  'For another one, have an administrator make a new token in the personal account, and import its link.';

const NO_LINK =
  'What was given is no link that begins with https://. Give the whole link, or its JSON with `tokens import - < file`. Nothing was changed.';

const LINK = /^https?:\/\/\S+$/i;

async function readSource(
  source: string,
  tokens: HeldTokens,
  { stdin, stop }: Terminal,
): Promise<Pair> {
  const isGiven = source !== '-';
  const text = (isGiven ? source : await textOf(addAbortSignal(stop, stdin))).trim();
  if (!LINK.test(text)) {
    // Not shown: it may be the JSON, which must not be an argument, or the link without its beginning.
    if (isGiven) throw new OperatorMistake(NO_LINK);
    return readTokenSet(text);
  }
  const { config, http, serviceUrl: recruitingUrl } = tokens;
  if (!isSecureUrl(text)) {
    throw new OperatorMistake(
      'The link must begin with https:// (http:// is only for this machine). Nothing was sent or changed.',
    );
  }
  const foreign = foreignLink(text, { recruitingUrl, origin: config.tokenLinkOrigin });
  if (foreign !== undefined) throw new OperatorMistake(`The token link ${foreign}`);
  return readLink(text, { agent: config.agent, http });
}

async function finishImport(tokens: HeldTokens, { clock }: Terminal): Promise<void> {
  const { holder, print } = tokens;
  const { set } = holder.state!;
  let refreshed = await exchange(tokens).catch((error: Error) => error);
  const wait = dueAt(holder.state!, holder.now) - holder.now;
  if (holder.state!.refusals > 0 && wait < SOON_MS) {
    // A second refusal, a few seconds after the first, tells a spent refresh token from clocks that differ.
    await clock.sleep(wait);
    refreshed = await exchange(tokens, true).catch((error: Error) => error);
  }
  const { now } = holder;
  const state = holder.state!;
  if (state.set !== set || state.lost) {
    throw new Error(
      'The service refuses the refresh token of this set: it was spent before, or revoked. The import was withdrawn: what it had ' +
        `replaced, if anything, is in use again. ${NEW_LINK}`,
    );
  }
  if (!(refreshed instanceof Error)) {
    print(
      `Refreshed at once: ${inUse(refreshed)} The link no longer works. A gateway that runs on this store uses the new ` +
        'access token within half a minute; otherwise, start one now.',
    );
  } else if (state.refusals > 0 && now < state.expiresAt) {
    print(
      `It was not refreshed yet. ${earlyOrSpent(state, now)} Until then the link works: keep it secret.`,
    );
  } else {
    const next = troubleIn(holder, ['uncertain'])
      ? ''
      : ' Without a gateway, run `tokens refresh`.';
    throw new Error(
      `The set is in the store, but was not refreshed yet: ${refreshed.message}${next} Do not import it again.`,
    );
  }
}

const SOON_MS = 10_000;

/** Refreshes once, or waits for the refresh of another process. */
export async function tokensRefresh(_options: object, terminal: Terminal): Promise<void> {
  await withHeldTokens(terminal, async (tokens) => {
    const state = present(tokens);
    const obstacle = troubleIn(tokens.holder, ['missing', 'lost', 'uncertain']);
    if (obstacle) throw nothingSent(lineOn(obstacle, state, STEPS));
    tokens.print(`Refreshed: ${inUse(await exchange(tokens))}`);
  });
}

/** The first of these troubles that the held set has. */
function troubleIn({ state, facts }: TokenHolder, troubles: readonly Trouble[]) {
  const found = troublesOf(state, facts);
  return troubles.find((trouble) => found.includes(trouble));
}

function nothingSent(why: string): Error {
  return new Error(`Nothing was sent. ${why}`);
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
 * @throws Error that says why there is no new pair, and what helps
 */
async function exchange({ holder }: HeldTokens, recovers = false): Promise<State> {
  const { now } = holder;
  const state = holder.state!;
  const isFree = recovers || (state.refusals === 0 && !state.refusesEarly);
  const wait = (isFree ? state.notBefore : dueAt(state, now)) - now;
  if (wait > 0) {
    throw nothingSent(
      'The service refuses earlier refreshes, has refused this one, or asked for a pause: the next refresh is due in ' +
        `${duration(Math.ceil(wait / 1000))}. A running gateway sends it then; otherwise run this again.`,
    );
  }
  try {
    return await holder.exchange({ evenIfLost: recovers });
  } catch (error) {
    const left = holder.state;
    if (!left || codeOf(error) === 'INTERNAL_SERVER_ERROR') throw error;
    const trouble = troubleIn(holder, ['missing', 'lost', 'uncertain']);
    // Uncertain is what is being recovered from.
    if (trouble && !(recovers && trouble === 'uncertain')) {
      throw new Error(lineOn(trouble, left, STEPS), { cause: error });
    }
    throw left.refusals > 0 ? new Error(earlyOrSpent(left, holder.now), { cause: error }) : error;
  }
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
    const state = present(tokens);
    const { now } = holder;
    const { claim, refusals, movedTo, generation } = state;
    if (movedTo !== null) throw nothingSent(lineOn('missing', state, STEPS));
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
        : 'The service has refused the refresh token: too early, or spent.',
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

/** Saves the pair in an answer that was not understood, if the service knows its access token: it may have expired since. */
async function saveKeptAnswer(tokens: HeldTokens, state: State): Promise<boolean> {
  const { holder, service, by, print } = tokens;
  if (state.answer === null) return false;
  const pair = pairIn(state);
  const verdict = pair && (await service.check(pair.accessToken));
  const hasExpired = verdict?.kind === 'refused' && verdict.detail === 'token_expired';
  if (!pair || (verdict?.kind !== 'works' && !hasExpired)) {
    print('An answer of the service is kept, and holds no pair that the service accepts.');
    return false;
  }
  const at = state.claim ? state.claim.until - CLAIM_MS : holder.now;
  // What was refused before was spent, which says nothing about early refreshes.
  const next = { ...successor(state, pair, at), refusesEarly: state.refusesEarly };
  await holder.update(save(next, by));
  print(
    `An answer of the service is kept, and the service knows its access token, so nothing was lost: ${inUse(holder.state!)} ` +
      'The refresh token before it was not sent again.',
  );
  return true;
}

/**
 * Moves the set to another store. Afterwards this one refuses to refresh it. The set is given away before the other store
 * gets it, so that it never has two owners. Repeated, the command finishes a move.
 */
export async function tokensExport(
  address: string,
  _options: object,
  terminal: Terminal,
): Promise<void> {
  const target = readStoreAddress(address);
  if (!target) {
    throw new OperatorMistake(
      'That is not the address of a store; give sqlite:<file>, such as sqlite:/var/lib/recruiting/tokens.db, or ' +
        'postgres://<user>:<password>@<host>/<database>. Nothing was changed.',
    );
  }
  await withHeldTokens(terminal, async (tokens) => {
    const { config, holder, store, by, print } = tokens;
    const state = present(tokens);
    const other = openTokenStore(target, config.tokenStoreKeys);
    const { description } = other;
    const place = async (rule: Rule<'placed' | 'in use'>) => {
      const outcome = await other.update(rule).catch((error: unknown) => {
        throw storeError(error, other);
      });
      if (outcome === 'placed') return;
      throw new Error(
        `The store ${description} has a token set that is in use. Nothing was changed there. Move the set to an empty store.`,
      );
    };
    // Reading alone would not show whether it can be written.
    await place((there, now) => ({ result: receiveMove(state, by)(there, now).result }));
    const given = await holder.update(moveTo(description, by));
    if (!given) {
      const trouble = troubleIn(holder, ['missing', 'lost', 'uncertain']);
      const why = trouble ? lineOn(trouble, holder.state, STEPS) : underWay(holder.state!.claim!);
      throw new Error(`Nothing was moved. ${why}`);
    }
    await place(receiveMove(given, by));
    const setting = target.kind === 'sqlite' ? `=${description}` : ' to its address';
    print(
      `The token set is in ${description} now, and ${store.description} refuses to refresh it. Set TOKEN_STORE${setting} for ` +
        'every gateway that used the other, and restart them.',
    );
  });
}
