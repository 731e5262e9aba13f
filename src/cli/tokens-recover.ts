import { movedError, unrecoverableText } from '../tokens/token-errors.ts';
import {
  accessLeft,
  accessTokenOf,
  lossOf,
  mayHaveSuccessor,
  waitsForExpiry,
} from '../tokens/held-tokens.ts';
import { systemClock } from '../clock.ts';
import { mayFollow } from '../tokens/store/rescue.ts';
import { CLAIM_LIFE_MS, type TokenStore } from '../tokens/store/token-store.ts';
import { codeOf } from '../errors.ts';
import { REBUILD } from './damaged-store.ts';
import { CommandError, duration, type Terminal } from './terminal.ts';
import { withTokens, type TokenTools } from './token-session.ts';

/**
 * Repairs an empty or damaged store, and resolves an uncertain refresh. Prints what it finds and the next step.
 *
 * @param rebuild whether tables that cannot be repaired are replaced
 */
export async function tokensRecover(
  { rebuild }: { rebuild: boolean },
  terminal: Terminal,
): Promise<void> {
  await withTokens(terminal, rebuild ? 'rebuild' : 'recover', async (tools) => {
    const { config, store, repairs, rescued, held, print } = tools;
    await claimIsOver(tools, terminal);
    const tokens = held.tokens!;
    const { state, generation } = tokens;
    if (state.kind === 'moved') throw new CommandError(movedError(state.to).message);
    const mayBeSpent = mayHaveSuccessor(tokens);
    const next = rescued.failed.find((file) => mayFollow(file, tokens, mayBeSpent));
    if (next?.isRefused && config.tokenStore.kind === 'postgres') throw new CommandError(NOT_TAKEN);
    const loss = lossOf(tokens, systemClock);
    const hasEnded = loss === 'ended';
    if (loss && !hasEnded && !next) {
      printKept(tools);
      return lastTry(tools, new CommandError(unrecoverableText(loss)));
    }
    if (state.kind === 'refreshing') throw new CommandError(UNDER_WAY);
    if (next) throw new CommandError(RESCUE_FIRST);
    const isRefusedEarly = state.kind === 'early-or-spent';
    if (!mayBeSpent && !hasEnded && !isRefusedEarly) {
      if (repairs.isMade) return print(repaired(generation));
      const other = repairs.saved + rescued.saved.length > 0 ? 'else ' : '';
      return print(
        `There is nothing ${other}to recover: generation ${generation} is not uncertain.`,
      );
    }
    if (isRefusedEarly) print(EARLY_OR_SPENT);
    if (hasEnded || !isRefusedEarly) print(hasEnded ? ENDED : await story(store, generation));
    printKept(tools);
    if (await saveAnswer(tools)) return;
    const works = await askAccess(tools);
    if (works && !hasEnded && waitsForExpiry(held.tokens!)) return print(TOO_EARLY);
    await replay(tools, hasEnded).catch((error: CommandError) => {
      if (!lossOf(held.tokens!, systemClock)) throw error;
      return lastTry(tools, error);
    });
  });
}

const UNDER_WAY =
  'A process is exchanging the refresh token at this moment. Nothing was sent. Run this again in a minute; ' +
  'if that lasts for five minutes, a process on this store was stopped or hangs: continue or end it.';

/**
 * Waits out a claim whose end lies too far ahead because a clock was set back. Only a process that keeps running can
 * measure that time.
 */
async function claimIsOver({ held, store, print }: TokenTools, { stop }: Terminal): Promise<void> {
  const isExchanging = () => held.tokens!.state.kind === 'refreshing';
  if (!isExchanging() || !(await store.read())?.claim?.isDatedAhead) return;
  print(
    'The clock of the token store was set back during an exchange, so the store does not show when that is over. This waits ' +
      `${duration(CLAIM_LIFE_MS / 1000)} at most.`,
  );
  for (const until = systemClock.elapsed() + CLAIM_LIFE_MS + LOOK_MS; isExchanging();) {
    if (systemClock.elapsed() >= until) return;
    await systemClock.sleep(LOOK_MS, stop).catch(() => {
      throw new CommandError('Stopped before the exchange was over. Nothing was sent.');
    });
    await held.sync();
  }
}

const LOOK_MS = 1_000;

/** The content of the old store is lost, including the claim of an exchange. */
function repaired(generation: number): string {
  return (
    `The store was repaired: generation ${generation} is in use. Whether a refresh was under way when the store was lost is not known. ` +
    'If so, a gateway that still runs saves the next pair into this store by itself. If its process has ended, the refresh ' +
    'token is spent, which the next refresh shows.'
  );
}

/** If the next pair has arrived, the refresh token before it must not be sent again. */
const RESCUE_FIRST =
  'The next pair may be in the rescue file that could not be read. Nothing was sent. ' +
  'Correct what is reported about that file (TOKEN_STORE_KEY as the gateway has it, TOKEN_STORE, permissions), and run this again. ' +
  'Only when the file belongs to another store: move it elsewhere first.';

const NOT_TAKEN =
  'The store can be read, and does not take the next pair, which waits in that rescue file: do not remove it. Nothing was sent. ' +
  `Correct what is reported (rights, constraints, triggers), and run this again. If you cannot: ${REBUILD}`;

const ENDED =
  'The refresh token has ended by the clock of the token store. If that clock was wrong when the tokens were saved, or is ' +
  'now, the service may still accept it, and there is nothing to lose.';

const EARLY_OR_SPENT =
  'The service refused an exchange while the access token worked: either it exchanges no refresh token before the access token has ' +
  'expired, or the refresh token is spent.';

const TOO_EARLY =
  'So nothing is sent now: a running gateway sends the refresh token right after the access token has expired. Start one, or keep it running.';

async function story(store: TokenStore, generation: number): Promise<string> {
  const open = (await store.history(1_000)).find(
    (entry) =>
      entry.generation === generation &&
      (entry.outcome === 'uncertain' || entry.outcome === 'begun'),
  );
  if (!open) return 'An exchange of the refresh token is uncertain.';
  const how =
    open.outcome === 'begun'
      ? 'its process ended before the answer was saved'
      : 'no clear answer came';
  return (
    `The exchange of generation ${open.generation} that ${open.replica} began at ${new Date(open.at).toISOString()} is uncertain: ${how}. ` +
    'If the service never processed it, the refresh token still works; otherwise it is spent.'
  );
}

function printKept({ held, print }: TokenTools): void {
  for (const { path, status, at, namesPair } of held.answers.kept(held.tokens!)) {
    print(
      `The answer of ${new Date(at).toISOString()} (status ${status}) was not understood, and is kept in ${path}: ` +
        `it names ${namesPair ? 'a token pair' : 'no token pair'}.`,
    );
  }
}

/** Saves the pair in a kept answer. If the service accepts its access token, no refresh token has to be sent. */
async function saveAnswer(
  { held, print }: TokenTools,
  unproved = false,
): Promise<'proved' | 'unproved' | undefined> {
  const outcome = await held.answers.save(held.tokens!, unproved).catch(({ message }: Error) => {
    throw new CommandError(`${message} Nothing was sent. Run \`tokens recover\` again then.`);
  });
  if (!outcome) return undefined;
  await held.sync();
  const { generation } = held.tokens!;
  print(
    outcome === 'proved'
      ? `The service accepts the access token of that pair: generation ${generation} is in use. Nothing was sent.`
      : `The service no longer accepts the access token of that pair. The pair is saved as generation ${generation}, to try its refresh token.`,
  );
  return outcome;
}

/** Tries the pair in a kept answer without proof, because the tokens are lost anyway. */
async function lastTry(tools: TokenTools, lost: CommandError): Promise<void> {
  const outcome = await saveAnswer(tools, true);
  if (!outcome) throw lost;
  if (outcome === 'unproved') await replay(tools);
}

/** @returns whether the service accepts the access token */
async function askAccess({ held, checkAccess, print }: TokenTools): Promise<boolean> {
  const tokens = held.tokens!;
  const verdict = await checkAccess(tokens.pair.accessToken);
  if (verdict.kind === 'unknown') {
    if (accessLeft(tokens, systemClock) <= 0) {
      print(
        `The access token has expired, and the service gives no clear answer (${verdict.why}).`,
      );
      return false;
    }
    throw new CommandError(
      `The service gives no clear answer (${verdict.why}), so nothing was sent. Try again when it can be reached.`,
    );
  }
  if (verdict.kind === 'refused' && verdict.detail === 'token_expired') {
    held.expired(accessTokenOf(tokens));
  }
  print(
    verdict.kind === 'works'
      ? 'The access token works.'
      : `The access token does not work (${verdict.detail}).`,
  );
  return verdict.kind === 'works';
}

async function replay({ held, refresher, print }: TokenTools, evenIfEnded = false): Promise<void> {
  print('The refresh token is sent once more …');
  try {
    const { generation, pair } = await refresher.refresh(evenIfEnded);
    print(
      `It worked: nothing was lost. Generation ${generation} is in use; its access token lives for ${duration(pair.expiresIn)}.`,
    );
  } catch (error) {
    const tokens = held.tokens!;
    const loss = codeOf(error) === 'TOKENS_LOST' ? lossOf(tokens, systemClock) : undefined;
    if (loss) {
      const left = accessLeft(tokens, systemClock) / 1000;
      throw new CommandError(
        `${unrecoverableText(loss)} Until then requests are answered for as long as the service accepts the old access token` +
          `${left > 0 ? `, ${duration(left)} at most` : ''}.`,
      );
    }
    throw new CommandError(
      `${(error as Error).message} Nothing is decided yet: run \`tokens recover\` again then.`,
    );
  }
}
