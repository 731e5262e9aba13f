import type { Command } from 'commander';
import { codeOf } from '../errors.ts';
import { mayHaveSuccessor } from '../tokens/held-tokens.ts';
import type { Rotation } from '../tokens/rotation.ts';
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
      'take the token set from its one-time link, a file, or - for standard input, and rotate it at once',
    )
    .option('--replace', 'also over a set that is in use', false)
    .action((source, options) => tokensImport(source, options, terminal));

  tokens
    .command('status')
    .description('how the tokens stand; exit code 0 healthy, 1 needs attention, 2 lost or missing')
    .option('--json', 'for machines', false)
    .action(async (options) => end(await tokensStatus(options, terminal)));

  tokens
    .command('check')
    .description('ask the service whether it takes the current access token')
    .option('--json', 'for machines', false)
    .action(async (options) => end(await tokensCheck(options, terminal)));

  tokens
    .command('refresh')
    .description('one rotation now')
    .action(() => tokensRefresh(terminal));

  tokens
    .command('recover')
    .description('the way out of a rotation that ended without a clear answer')
    .action(() => tokensRecover(terminal));

  tokens
    .command('export <store>')
    .description('move the token set to another store, such as sqlite:<file>')
    .action((store) => tokensExport(store, terminal));
}

/** Asks the service whether it takes the current access token; gives the exit code: 0 it does, 1 not. */
async function tokensCheck({ json }: { json: boolean }, terminal: Terminal) {
  return withTokenStore(terminal, 'look', async (session) => {
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
  if (verdict.kind === 'works') return `${service} takes the access token.`;
  if (verdict.kind === 'unknown') {
    return `${service} gave no clear answer (${verdict.why}). Nothing is wrong with the tokens as far as this tells. Check RECRUITING_URL and the way to it, and try again.`;
  }
  return verdict.detail === 'token_expired'
    ? `${service} says that the access token has expired. Run \`tokens refresh\`; a running gateway does it by itself.`
    : `${service} refuses the access token (${verdict.detail}): the administrator who made it was probably demoted or blocked, ` +
        'or the token was revoked. Have the account checked; if it needs a new token, run `tokens import <link> --replace`.';
}

/** One rotation now, or the one that another process makes at this moment. */
async function tokensRefresh(terminal: Terminal): Promise<void> {
  await withTokenStore(terminal, 'work', async (session) => {
    const { stored } = session;
    if (!stored) throw await noTokens(session);
    await withTokenService(session, stored.baseUrl, terminal, async ({ rotation }) => {
      if (rotation.tokens && mayHaveSuccessor(rotation.tokens))
        throw new CommandError(`Nothing was sent. ${ADVICE.uncertain}`);
      const { generation, pair } = await rotation.refresh().catch((error: Error) => {
        throw new CommandError(whatNow(error, rotation));
      });
      terminal.stdout.write(
        `Rotated: generation ${generation} is in use. Its access token lives for ${duration(pair.expiresIn)}, ` +
          `its refresh token for ${duration(pair.refreshTokenExpiresIn)}.\n`,
      );
    });
  });
}

/** For somebody who watches: trying again is no advice where it would be refused. */
function whatNow(error: Error, { tokens }: Pick<Rotation, 'tokens'>): string {
  if (codeOf(error) === 'TOKENS_LOST' || !tokens || !mayHaveSuccessor(tokens)) return error.message;
  return NO_CLEAR_ANSWER;
}

const NO_CLEAR_ANSWER =
  'The refresh token was sent, and no clear answer came, so it may be spent. Once more this command would send nothing. ' +
  'The access token serves while it works. Run `tokens recover` to know at once.';
