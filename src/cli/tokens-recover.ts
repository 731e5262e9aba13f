import { lostError, movedError } from '../tokens/token-errors.ts';
import { lossOf } from '../tokens/head.ts';
import { systemClock } from '../clock.ts';
import { mayFollow, type RescueReport } from '../tokens/store/rescue.ts';
import type { TokenStore } from '../tokens/store/token-store.ts';
import { codeOf } from '../errors.ts';
import { duration } from './duration.ts';
import { CommandError, type Terminal } from './terminal.ts';
import {
  isInDoubt,
  noTokens,
  withTokenService,
  withTokenStore,
  type TokenService,
} from './token-session.ts';

/** The guided way out of an uncertain rotation: says what it finds, does the one thing that helps, and what comes next. */
export async function tokensRecover(terminal: Terminal): Promise<void> {
  const say = (text: string) => void terminal.stdout.write(`${text}\n`);
  await withTokenStore(terminal, 'recover', async (session) => {
    const { store, stored } = session;
    if (!stored) throw await noTokens(session);
    await withTokenService(session, stored.baseUrl, terminal, async (service) => {
      const head = service.rotation.head!;
      if (head.movedTo !== null) throw new CommandError(movedError(head.movedTo).message);
      const loss = lossOf(head, systemClock);
      if (loss) throw new CommandError(lostError(loss).message);
      if (head.busy) {
        throw new CommandError(
          'A process is exchanging the refresh token at this moment. Nothing was sent. Run this again in a minute; ' +
            'if it says the same after five, a process on this store was stopped or hangs: wake or end it.',
        );
      }
      const mayHoldNext = (file: RescueReport['failed'][number]) =>
        mayFollow(file, { ...head, doubtful: isInDoubt(head) });
      if (service.rescued.failed.some(mayHoldNext)) throw new CommandError(RESCUE_FIRST);
      if (!isInDoubt(head)) {
        say(`There is nothing to recover: generation ${head.generation} is not in doubt.`);
        return;
      }
      say(await story(store, head.generation));
      await askAccess(service, say);
      await replay(service, say);
    });
  });
}

/** The pair may have been received: then the refresh token before it must not be sent again. */
const RESCUE_FIRST =
  'The pair that the last exchange gave may be in the rescue file that could not be read. Nothing was sent. ' +
  'Mend what is said about that file (TOKEN_STORE_KEY as the gateway has it, TOKEN_STORE, its rights), and run this again. ' +
  'Only when the file belongs to another store: move it elsewhere first.';

async function story(store: TokenStore, generation: number): Promise<string> {
  const open = (await store.history(1_000)).find(
    (one) =>
      one.generation === generation && (one.outcome === 'uncertain' || one.outcome === 'begun'),
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
      `It worked: nothing was lost. Generation ${generation} is in use; its access token lives for ${duration(pair.expiresIn)}.`,
    );
  } catch (error) {
    const { pair, bornAt } = rotation.head!;
    if (codeOf(error) === 'TOKENS_LOST') {
      const left = (bornAt + pair.expiresIn * 1000 - systemClock.elapsed()) / 1000;
      throw new CommandError(
        `${(error as Error).message} Until then queries are answered for as long as the service takes the old access token` +
          `${left > 0 ? `, ${duration(left)} at most` : ''}.`,
      );
    }
    throw new CommandError(
      `${(error as Error).message} Nothing is decided yet: run \`tokens recover\` again then.`,
    );
  }
}
