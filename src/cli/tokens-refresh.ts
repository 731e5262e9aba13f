import { ADVICE } from '../tokens/token-trouble.ts';
import { duration } from './duration.ts';
import { CommandError, type Terminal } from './terminal.ts';
import { withTokenService, withTokenStore } from './token-session.ts';
import { missingError } from '../tokens/token-errors.ts';

/** One rotation now, or the one that another process makes at this moment. */
export async function tokensRefresh(terminal: Terminal): Promise<void> {
  await withTokenStore(terminal, { create: false }, async (session) => {
    if (session.baseUrl === undefined) throw new CommandError(missingError().message);
    await withTokenService(session, session.baseUrl, terminal, async ({ rotation }) => {
      if (rotation.head?.doubtful) throw new CommandError(`Nothing was sent. ${ADVICE.uncertain}`);
      const { generation, pair } = await rotation.rotate();
      terminal.stdout.write(
        `Rotated: generation ${generation}, its access token lives for ${duration(pair.expiresIn)}, ` +
          `its refresh token for ${duration(pair.refreshTokenExpiresIn)}.\n`,
      );
    });
  });
}
