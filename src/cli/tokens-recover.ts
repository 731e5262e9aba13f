import { lostError, missingError, movedError } from '../tokens/token-errors.ts';
import { lossOf } from '../tokens/head.ts';
import { systemClock } from '../clock.ts';
import type { TokenStore } from '../tokens/token-store.ts';
import { codeOf } from '../errors.ts';
import { duration } from './duration.ts';
import { CommandError, type Terminal } from './terminal.ts';
import { withTokenService, withTokenStore, type TokenService } from './token-session.ts';

/** The guided way out of an uncertain rotation: says what it finds, does the one thing that helps, and what comes next. */
export async function tokensRecover(terminal: Terminal): Promise<void> {
  const say = (text: string) => void terminal.stdout.write(`${text}\n`);
  await withTokenStore(terminal, { create: false }, async (session) => {
    const { store, baseUrl } = session;
    if (baseUrl === undefined) throw new CommandError(missingError().message);
    await withTokenService(session, baseUrl, terminal, async (service) => {
      const { head } = service.rotation;
      if (!head) throw new CommandError(missingError().message);
      if (head.movedTo !== null) throw new CommandError(movedError(head.movedTo).message);
      const loss = lossOf(head, systemClock);
      if (loss) throw new CommandError(lostError(loss).message);
      if (head.busy) {
        throw new CommandError(
          'A process is exchanging the refresh token at this moment. Run this again when it has ended; ' +
            'if it was stopped or hangs, wake or end it first.',
        );
      }
      if (!head.doubtful) {
        say(`There is nothing to recover: generation ${head.generation} is not in doubt.`);
        return;
      }
      say(await story(store));
      await askAccess(service, say);
      await replay(service, say);
    });
  });
}

async function story(store: TokenStore): Promise<string> {
  const open = (await store.history(10)).find(
    ({ outcome }) => outcome === 'uncertain' || outcome === 'begun',
  );
  if (!open) return 'An exchange of the refresh token ended in doubt.';
  const how =
    open.outcome === 'begun'
      ? 'its process ended before the answer was saved'
      : 'no clear answer came';
  return (
    `The exchange of generation ${open.generation} that ${open.replica} began at ${new Date(open.at).toISOString()} ended in doubt: ${how}. ` +
    'If the service never processed it, the refresh token still works; otherwise it is spent.'
  );
}

async function askAccess({ rotation, checkAccess }: TokenService, say: (text: string) => void) {
  const verdict = await checkAccess(rotation.head!.pair.accessToken);
  if (verdict.kind === 'unknown') {
    throw new CommandError(
      `The service gives no clear answer (${verdict.why}), so nothing was sent. Try again when it can be reached.`,
    );
  }
  say(
    verdict.kind === 'works'
      ? 'The access token works.'
      : `The access token does not work (${verdict.detail}).`,
  );
}

async function replay({ rotation }: TokenService, say: (text: string) => void): Promise<void> {
  say('The refresh token is sent once more …');
  try {
    const { generation, pair } = await rotation.rotate();
    say(
      `It worked. Generation ${generation} is in use; its access token lives for ${duration(pair.expiresIn)}.`,
    );
  } catch (error) {
    if (codeOf(error) === 'TOKENS_LOST') throw error;
    throw new CommandError(
      `${(error as Error).message} It is still in doubt; run this again when the service answers.`,
    );
  }
}
