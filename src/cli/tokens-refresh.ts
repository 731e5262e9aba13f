import { mayHaveSuccessor } from '../tokens/held-tokens.ts';
import { ADVICE } from '../tokens/token-health.ts';
import { codeOf } from '../errors.ts';
import type { Rotation } from '../tokens/rotation.ts';
import { duration } from './duration.ts';
import { CommandError, type Terminal } from './terminal.ts';
import { noTokens, withTokenService, withTokenStore } from './token-session.ts';

/** One rotation now, or the one that another process makes at this moment. */
export async function tokensRefresh(terminal: Terminal): Promise<void> {
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
