import { systemClock } from '../clock.ts';
import { isSecureUrl } from '../config-values.ts';
import { codeOf } from '../errors.ts';
import { importSet, isInUse, knownTokenText } from '../tokens/import-set.ts';
import { readTokenFile, readTokenLink } from '../tokens/token-link.ts';
import type { TokenPair } from '../tokens/token-set.ts';
import type { StoredTokens } from '../tokens/token-store.ts';
import { duration } from './duration.ts';
import { CommandError, type Terminal } from './terminal.ts';
import {
  withTokenService,
  withTokenStore,
  type TokenService,
  type TokenSession,
} from './token-session.ts';
import { replicaOf } from './token-store.ts';

const LONGEST_INPUT = 64 * 1024;

/**
 * Takes a token set into the store and rotates it at once: that kills the link, starts both lifetimes, and
 * fails while somebody watches.
 *
 * @param source the one-time link, a file, or `-`; file and standard input hold the link or the JSON behind it
 */
export async function tokensImport(
  source: string,
  { replace }: { replace: boolean },
  terminal: Terminal,
): Promise<void> {
  await withTokenStore(terminal, { create: true }, async (session) => {
    const { store, stored, config } = session;
    const baseUrl = config.recruitingUrl;
    if (baseUrl === undefined) {
      throw new CommandError('Set RECRUITING_URL to the service that the token set is for.', 2);
    }
    if (isInUse(stored, systemClock.now()) && !replace) throw inUse(stored);
    const pair = await readSource(source, session, terminal);
    const parts = { store, baseUrl, replica: replicaOf(terminal.owner), clock: systemClock };
    const outcome = await importSet(parts, pair, stored);
    if (outcome.kind === 'known') throw new CommandError(knownTokenText(outcome));
    if (outcome.kind === 'overtaken') {
      throw new CommandError(
        'Another process changed the token store at this moment. Nothing was imported; look at `tokens status`, and try again.',
      );
    }
    const { generation, fingerprint } = outcome.stored;
    terminal.stdout.write(
      `Imported the token set ${pair.name === null ? '(without a name)' : `"${pair.name}"`} of ${new URL(baseUrl).host} ` +
        `as generation ${generation} (refresh token ${fingerprint}).\n`,
    );
    await withTokenService(session, baseUrl, terminal, (service) =>
      rotateAtOnce(service, outcome.stored, stored, session, terminal),
    );
  });
}

function inUse({ pair, baseUrl, generation, mark }: StoredTokens): CommandError {
  const name = pair.name === null ? '' : ` "${pair.name}"`;
  return new CommandError(
    `The store holds a token set${name} of ${new URL(baseUrl).host} (generation ${generation}) that is in use. Nothing was changed. ` +
      (mark && !mark.live ? 'An exchange of it is in doubt: run `tokens recover` first. ' : '') +
      'To replace it all the same, add --replace.',
  );
}

async function readSource(
  source: string,
  { config }: TokenSession,
  terminal: Terminal,
): Promise<TokenPair> {
  const text = isLink(source) ? source : (await contentOf(source, terminal)).trim();
  if (!isLink(text)) return readTokenFile(text);
  if (!isSecureUrl(text)) {
    throw new CommandError(
      'The link must begin with https:// (http:// is for this machine alone).',
      2,
    );
  }
  return readTokenLink(text, { agent: config.agent, proxy: terminal.proxyFor(text) });
}

function isLink(text: string): boolean {
  return /^https?:\/\/\S+$/i.test(text);
}

async function contentOf(source: string, { stdin, readFile }: Terminal): Promise<string> {
  if (source !== '-') {
    try {
      return readFile(source);
    } catch (error) {
      const { code } = error as { code?: string };
      throw new CommandError(
        `The file cannot be read (${source}: ${code ?? 'unknown error'}). Give the one-time link, a file, or - for standard input.`,
        2,
      );
    }
  }
  let text = '';
  for await (const chunk of stdin) {
    text += String(chunk);
    if (text.length > LONGEST_INPUT) break;
  }
  return text;
}

async function rotateAtOnce(
  { rotation }: TokenService,
  imported: StoredTokens,
  before: StoredTokens | null,
  { store }: TokenSession,
  terminal: Terminal,
): Promise<void> {
  try {
    const { generation, pair } = await rotation.rotate();
    terminal.stdout.write(
      `Rotated at once: generation ${generation} is in use, and the link is dead. The access token lives for ` +
        `${duration(pair.expiresIn)}, the refresh token for ${duration(pair.refreshTokenExpiresIn)}. ` +
        'A gateway on this store takes it over within half a minute.\n',
    );
  } catch (error) {
    const { message } = error as Error;
    if (codeOf(error) !== 'TOKENS_LOST') {
      throw new CommandError(
        `It is in the store, but was not rotated yet: ${message} A running gateway tries again by itself; otherwise run \`tokens refresh\`.`,
      );
    }
    const isBack = before !== null && (await store.withdraw(imported.set));
    throw new CommandError(
      'The service refuses its refresh token: it was spent before, or revoked. ' +
        (isBack
          ? `Nothing was replaced: generation ${before.generation} is in use again. `
          : 'No set is in use now. ') +
        'Have an administrator make a new token in the personal account, and import its link.',
    );
  }
}
