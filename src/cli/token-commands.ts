import type { Command } from 'commander';
import { codeOf } from '../errors.ts';
import { systemClock } from '../clock.ts';
import {
  accessLeft,
  mayHaveSuccessor,
  waitsForExpiry,
  type HeldTokens,
} from '../tokens/held-tokens.ts';
import type { TokenRefresher } from '../tokens/token-refresher.ts';
import { authCheck, type AccessVerdict } from '../tokens/service/auth-check.ts';
import { ADVICE } from '../tokens/token-health.ts';
import { CommandError, duration, type Terminal } from './terminal.ts';
import { noTokens, withTokenService, withTokenStore } from './token-session.ts';
import { tokensExport } from './tokens-export.ts';
import { tokensImport } from './tokens-import.ts';
import { tokensRecover } from './tokens-recover.ts';
import { tokensStatus } from './tokens-status.ts';

/** @param end takes the exit code of a command that has one of its own */
export function addTokenCommands(
  root: Command,
  terminal: Terminal,
  end: (exitCode: number) => void,
): void {
  const tokens = root
    .command('tokens')
    .description('the token set; safe to use while a gateway runs on the same store');

  tokens
    .command('import <source>')
    .description(
      'import the token set from its one-time link, a file, or - for standard input, and refresh it at once',
    )
    .option('--replace', 'replace a set that is in use', false)
    .action((source, options) => tokensImport(source, options, terminal));

  tokens
    .command('status')
    .description(
      'print the state of the tokens; exit code 0 healthy, 1 needs attention, 2 lost, moved or missing',
    )
    .option('--json', 'print JSON', false)
    .action(async (options) => end(await tokensStatus(options, terminal)));

  tokens
    .command('check')
    .description('ask the service whether it accepts the current access token')
    .option('--json', 'print JSON', false)
    .action(async (options) => end(await tokensCheck(options, terminal)));

  tokens
    .command('refresh')
    .description('refresh once, now')
    .action(() => tokensRefresh(terminal));

  tokens
    .command('recover')
    .description(
      'resolve a refresh whose outcome is uncertain, and repair a store that is gone, empty or damaged',
    )
    .option('--rebuild', 'replace damaged tables (PostgreSQL), if nothing else helps', false)
    .action((options) => tokensRecover(options, terminal));

  tokens
    .command('export <store>')
    .description(
      'move the token set to another store: sqlite:<file>, or postgres://<user>:<password>@<host>/<database>',
    )
    .action((store) => tokensExport(store, terminal));
}

/** Asks the service whether it accepts the current access token. @returns the exit code: 0 if it does, 1 if not */
async function tokensCheck({ json }: { json: boolean }, terminal: Terminal) {
  return withTokenStore(terminal, 'inspect', async (session) => {
    const { stored, config } = session;
    if (!stored) throw await noTokens(session);
    const { baseUrl } = stored;
    const proxy = terminal.proxyFor(baseUrl);
    const checkAccess = authCheck({ baseUrl, agent: config.agent, proxy });
    const verdict = await checkAccess(stored.pair.accessToken);
    const service = new URL(stored.baseUrl).host;
    const report = { service, generation: stored.generation, ...verdict };
    terminal.stdout.write(json ? `${JSON.stringify(report)}\n` : `${sentence(verdict, service)}\n`);
    return verdict.kind === 'works' ? 0 : 1;
  });
}

function sentence(verdict: AccessVerdict, service: string): string {
  if (verdict.kind === 'works') return `${service} accepts the access token.`;
  if (verdict.kind === 'unknown') {
    return `${service} gave no clear answer (${verdict.why}). Nothing is wrong with the tokens as far as this shows. Check RECRUITING_URL and the way to it, and try again.`;
  }
  return verdict.detail === 'token_expired'
    ? `${service} reports that the access token has expired. Run \`tokens refresh\`; a running gateway does it by itself.`
    : `${service} refuses the access token (${verdict.detail}): the administrator who made it was probably demoted or blocked, ` +
        'or the token was revoked. Have the account checked; if it needs a new token, run `tokens import <link> --replace`.';
}

/** Refreshes once, or waits for the refresh of another process. */
async function tokensRefresh(terminal: Terminal): Promise<void> {
  await withTokenStore(terminal, 'work', async (session) => {
    const { stored } = session;
    if (!stored) throw await noTokens(session);
    await withTokenService(
      session,
      stored.baseUrl,
      terminal,
      async ({ refresher, checkAccess }) => {
        if (refresher.tokens && mayHaveSuccessor(refresher.tokens))
          throw new CommandError(`Nothing was sent. ${ADVICE.uncertain}`);
        if (refresher.tokens && waitsForExpiry(refresher.tokens)) {
          const verdict = await checkAccess(refresher.tokens.pair.accessToken);
          if (verdict.kind === 'works') throw new CommandError(tooEarly(refresher.tokens));
        }
        const { generation, pair } = await refresher.refresh().catch((error: Error) => {
          throw new CommandError(whatNow(error, refresher));
        });
        terminal.stdout.write(
          `Refreshed: generation ${generation} is in use. Its access token lives for ${duration(pair.expiresIn)}, ` +
            `its refresh token for ${duration(pair.refreshTokenExpiresIn)}.\n`,
        );
      },
    );
  });
}

function tooEarly(tokens: HeldTokens): string {
  const left = Math.round(accessLeft(tokens, systemClock) / 1000);
  const when = left > 0 ? `, in ${duration(left)} at most` : '';
  return (
    'Nothing was sent: the access token works, and this service ' +
    (tokens.refusesEarly
      ? 'exchanges no refresh token before the access token has expired. '
      : 'has refused the refresh token already: as too early, or as spent. ') +
    `A running gateway sends it right after the expiry${when}.`
  );
}

/** The general message advises to try again, which this command would refuse while the tokens are uncertain. */
function whatNow(error: Error, { tokens }: Pick<TokenRefresher, 'tokens'>): string {
  if (codeOf(error) === 'TOKENS_LOST' || !tokens || !mayHaveSuccessor(tokens)) return error.message;
  return NO_CLEAR_ANSWER;
}

const NO_CLEAR_ANSWER =
  'The refresh token was sent, and no clear answer came, so it may be spent; this command does not send it again. ' +
  'The access token is used while it works. Run `tokens recover` to resolve it at once.';
