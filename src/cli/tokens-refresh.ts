import { systemClock } from '../clock.ts';
import { codeOf } from '../errors.ts';
import {
  accessLeft,
  mayHaveSuccessor,
  waitsForExpiry,
  type HeldTokens,
} from '../tokens/held-tokens.ts';
import { ADVICE } from '../tokens/token-health.ts';
import { CommandError, duration, type Terminal } from './terminal.ts';
import { withTokens } from './token-session.ts';

/** Refreshes once, or waits for the refresh of another process. */
export async function tokensRefresh(_options: object, terminal: Terminal): Promise<void> {
  await withTokens(terminal, 'work', async ({ held, refresher, checkAccess, print }) => {
    const { tokens } = held;
    if (tokens && mayHaveSuccessor(tokens)) {
      throw new CommandError(`Nothing was sent. ${ADVICE.uncertain}`);
    }
    if (tokens && waitsForExpiry(tokens)) {
      const verdict = await checkAccess(tokens.pair.accessToken);
      if (verdict.kind === 'works') throw new CommandError(tooEarly(tokens));
    }
    const { generation, pair } = await refresher.refresh().catch((error: Error) => {
      throw new CommandError(whatNow(error, held.tokens));
    });
    print(
      `Refreshed: generation ${generation} is in use. Its access token lives for ${duration(pair.expiresIn)}, ` +
        `its refresh token for ${duration(pair.refreshTokenExpiresIn)}.`,
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

/** Replaces the general advice to try again, which this command would refuse while the tokens are uncertain. */
function whatNow(error: Error, tokens: HeldTokens | undefined): string {
  if (codeOf(error) === 'TOKENS_LOST' || !tokens || !mayHaveSuccessor(tokens)) return error.message;
  return NO_CLEAR_ANSWER;
}

const NO_CLEAR_ANSWER =
  'The refresh token was sent, and no clear answer came, so it may be spent; this command does not send it again. ' +
  'The access token is used while it works. Run `tokens recover` to resolve it at once.';
