import { NoAnswerError } from '../clock.ts';
import type { Config } from '../config.ts';
import { foreignLink, isSecureUrl } from '../config/values.ts';
import { codeOf } from '../errors.ts';
import { mayHaveSuccessor, waitsForExpiry } from '../tokens/held-tokens.ts';
import { isInUse, knownTokenText } from '../tokens/token-import.ts';
import { readTokenFile, readTokenLink } from '../tokens/service/token-link.ts';
import { LARGEST_TOKEN_SET_BYTES, type TokenPair } from '../tokens/token-set.ts';
import { MAKE_A_NEW_ONE } from '../tokens/token-errors.ts';
import { adviceOn } from '../tokens/store/store-advice.ts';
import {
  StoreUnavailableError,
  type StoredTokens,
  type TokenStore,
} from '../tokens/store/token-store.ts';
import { placeOfStore, replicaOf } from '../setup/token-store.ts';
import {
  CommandError,
  duration,
  exitCodeOf,
  printable,
  stopped,
  type Terminal,
} from './terminal.ts';
import {
  readTokenConfig,
  withTokenService,
  withTokenStore,
  type TokenService,
  type TokenSession,
} from './token-session.ts';

/**
 * Imports a token set and refreshes it at once: that ends the link, starts both lifetimes, and shows any problem while
 * the operator watches.
 *
 * @param source the one-time link, a file, or `-`; file and standard input hold the link or the JSON behind it
 */
export async function tokensImport(
  { source, replace }: { source: string; replace: boolean },
  terminal: Terminal,
): Promise<void> {
  const config = readTokenConfig(terminal, { refusesUnknown: true });
  const { recruitingUrl: baseUrl } = config;
  if (baseUrl === undefined) throw new CommandError(NO_SERVICE, 2);
  if (isLink(source)) checkLink(source, config);
  let isOpen = false;
  const work = async (session: TokenSession) => {
    isOpen = true;
    const { store, stored } = session;
    if (isInUse(stored) && !replace) throw inUse(stored);
    const pair = await readSource(source, session, terminal);
    const replica = replicaOf(terminal.owner);
    const imported = { baseUrl, pair, replica, after: stored };
    const outcome = await store.import(imported).catch((error: Error) => {
      throw notImported(error, config);
    });
    if (outcome.kind === 'known') {
      const isLost = stored !== null && !isInUse(stored);
      throw new CommandError(knownTokenText(outcome, isLost));
    }
    if (outcome.kind === 'overtaken') {
      throw new CommandError(
        'Another process refreshed the set in the store, or imported one, at this moment, so nothing was imported. Check `tokens status`, and try again.',
      );
    }
    const { generation, fingerprint } = outcome.stored;
    terminal.stdout.write(
      `Imported the token set ${pair.name === null ? '(without a name)' : `"${printable(pair.name)}"`} of ${new URL(baseUrl).host} ` +
        `as generation ${generation} (refresh token ${fingerprint}).\n${describePlace(store, config)}`,
    );
    await withTokenService(session, baseUrl, terminal, (service) =>
      refreshAtOnce(service, outcome.stored, stored, session, terminal),
    ).catch((error: Error) => {
      throw error instanceof CommandError ? error : new CommandError(inStore(error));
    });
  };
  await withTokenStore(terminal, 'create', work, config).catch((error: Error) => {
    if (isOpen) throw error;
    throw new CommandError(`${error.message} ${NOTHING_IMPORTED}`, exitCodeOf(error));
  });
}

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

const NOTHING_IMPORTED = 'Nothing was imported, and the link still works.';

function notImported(error: Error, { tokenStore }: Config): CommandError {
  const where = `The token set could not be saved to the token store (${placeOfStore(tokenStore)}): ${error.message}.`;
  // The connection or the wait ended before the outcome was known.
  if (error instanceof StoreUnavailableError || error instanceof NoAnswerError) {
    return new CommandError(
      `${where} It may have been imported all the same: check \`tokens status\`. The link still works.`,
    );
  }
  const advice = adviceOn(error, tokenStore.kind === 'sqlite');
  return new CommandError(`${where} ${advice} ${NOTHING_IMPORTED}`);
}

/** Where the tokens are now, and what the operator should know of that place. */
function describePlace({ notices }: TokenStore, { tokenStore, tokenStoreKeys }: Config): string {
  const isEncrypted = tokenStoreKeys.length > 0;
  const place = `Token store: ${placeOfStore(tokenStore)}, ${isEncrypted ? 'encrypted with TOKEN_STORE_KEY' : 'not encrypted (TOKEN_STORE_KEY is not set)'}.`;
  return [place, ...notices].map((line) => `${line}\n`).join('');
}

const NO_SERVICE =
  'RECRUITING_URL is not set. Put the base address of the service that the token set is for in front of the command: ' +
  'RECRUITING_URL=https://recruiting.example.com (with the host of your service). Nothing was changed.';

function inUse(stored: StoredTokens): CommandError {
  const { pair, baseUrl, generation, claim, imported } = stored;
  const name = pair.name === null ? '' : ` "${printable(pair.name)}"`;
  const isUncertain = claim !== null && !claim.live;
  return new CommandError(
    `The store holds a token set${name} of ${new URL(baseUrl).host} (generation ${generation}) that is in use. Nothing was changed. ` +
      (isUncertain ? 'An exchange of it is uncertain: run `tokens recover` first. ' : '') +
      (imported && !claim && !waitsForExpiry(stored)
        ? 'It was imported before, and not refreshed yet: run `tokens refresh` to finish that. '
        : '') +
      'To replace it, add --replace.',
  );
}

async function readSource(
  source: string,
  { config }: TokenSession,
  terminal: Terminal,
): Promise<TokenPair> {
  const text = isLink(source) ? source : (await contentOf(source, terminal)).trim();
  if (!isLink(text)) return readTokenFile(text);
  checkLink(text, config);
  return readTokenLink(text, { agent: config.agent, proxy: terminal.proxyFor(text) });
}

function isLink(text: string): boolean {
  return /^https?:\/\/\S+$/i.test(text);
}

async function contentOf(source: string, { stdin, readFile, stop }: Terminal): Promise<string> {
  if (source !== '-') {
    try {
      return readFile(source);
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

async function readAll(stdin: Terminal['stdin']): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk as Uint8Array));
    size += chunks.at(-1)!.length;
    if (size > LARGEST_TOKEN_SET_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function refreshAtOnce(
  { held, refresher }: TokenService,
  imported: StoredTokens,
  before: StoredTokens | null,
  { store }: TokenSession,
  terminal: Terminal,
): Promise<void> {
  try {
    await refresher.advance();
    const { generation, pair, refusedEarly } = held.tokens!;
    if (generation === imported.generation) {
      terminal.stdout.write(`${refusedEarly ? REFUSED_EARLY : WAITS_FOR_EXPIRY} ${LINK_WORKS}\n`);
      return;
    }
    terminal.stdout.write(
      `Refreshed at once: generation ${generation} is in use, and the link no longer works. The access token lives for ` +
        `${duration(pair.expiresIn)}, the refresh token for ${duration(pair.refreshTokenExpiresIn)}. ` +
        'A gateway that runs on this store uses it within half a minute; otherwise, start one now.\n',
    );
  } catch (error) {
    if (codeOf(error) !== 'TOKENS_LOST') {
      throw new CommandError(notRefreshed(error as Error, held));
    }
    const isBack = isInUse(before) && (await store.withdraw(imported.set));
    throw new CommandError(
      'The service refuses its refresh token: it was spent before, or revoked. ' +
        (isBack
          ? `Nothing was replaced: generation ${before.generation} is in use again${before.claim ? ', and still uncertain (`tokens recover`)' : ''}. `
          : 'No set is in use now. ') +
        MAKE_A_NEW_ONE,
    );
  }
}

const REFUSED_EARLY =
  'It was not refreshed yet. The service accepts its access token, and refused its refresh token: either it exchanges none before the ' +
  'access token has expired, or the refresh token is spent. A running gateway sends it once more right after the expiry, ' +
  'which shows what is true: start one now, or keep it running.';

const WAITS_FOR_EXPIRY =
  'It was not refreshed yet, because this service exchanges no refresh token before the access token has expired: a running gateway does it ' +
  'then. Start one now, or keep it running.';

const LINK_WORKS = 'Until then the link works: keep it secret.';

function notRefreshed({ message }: Error, { tokens }: TokenService['held']): string {
  if (tokens && mayHaveSuccessor(tokens)) {
    return (
      'The set is in the store, but its first refresh got no clear answer, so its refresh token may be spent. ' +
      'Run `tokens recover` when the service answers; until then its access token is used while it works.'
    );
  }
  return inStore({ message });
}

function inStore({ message }: Pick<Error, 'message'>): string {
  return (
    `The set is in the store, but was not refreshed yet, so the link still works: ${message} ` +
    'A running gateway refreshes it by itself; otherwise run `tokens refresh`. Do not import it again.'
  );
}
