import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { CheckAccess } from './service/auth-check.ts';
import { isSamePair, replayAt, type UncertainTokens } from './held-tokens.ts';

/**
 * Decides what to do about an exchange that ended without a clear answer. As long as the access token works, there
 * is something to lose (some services revoke everything when a refresh token comes twice), so the refresh token is
 * sent once more only when the access token is near its end, or does not work.
 */
export interface UncertainRefresh {
  /** Logs that an exchange of this process ended without a clear answer. */
  report(tokens: UncertainTokens, why: string): void;
  /** When the next step is due, by `clock.elapsed()`. */
  dueAt(tokens: UncertainTokens): number;
  /**
   * Whether the refresh token is sent once more now. Asks the service whether the access token works, if that is not
   * known yet.
   *
   * @throws when it gives no clear answer
   */
  mustReplay(tokens: UncertainTokens): Promise<boolean>;
  /** Seconds until the next try, after several. */
  patience(tokens: UncertainTokens): number;
}

interface UncertainRefreshParts {
  checkAccess: CheckAccess;
  clock: Clock;
  log: Logger;
}

const FIRST_PATIENCE_S = 1;
const LONGEST_PATIENCE_S = 30 * 60;

export function createUncertainRefresh({
  checkAccess,
  clock,
  log,
}: UncertainRefreshParts): UncertainRefresh {
  let checked: { tokens: UncertainTokens; works: boolean } | undefined;
  const known = (tokens: UncertainTokens) =>
    checked &&
    isSamePair(checked.tokens, tokens) &&
    checked.tokens.state.unanswered === tokens.state.unanswered
      ? checked
      : undefined;

  return {
    report: ({ generation }, why) =>
      log.error({ trouble: 'uncertain', generation, why }, 'refresh uncertain: no clear answer'),
    dueAt: (tokens) => (known(tokens)?.works ? replayAt(tokens) : clock.elapsed()),
    mustReplay: async (tokens) => {
      // The access token is near its end: nothing is left to lose, whether or not the service can be reached.
      if (clock.elapsed() >= replayAt(tokens)) return true;
      return !(known(tokens)?.works ?? (await check(tokens)));
    },
    patience: ({ state: { unanswered } }) =>
      Math.min(LONGEST_PATIENCE_S, FIRST_PATIENCE_S * 2 ** Math.max(0, unanswered - 2)),
  };

  async function check(tokens: UncertainTokens): Promise<boolean> {
    const { generation, pair } = tokens;
    const verdict = await checkAccess(pair.accessToken);
    if (verdict.kind === 'unknown')
      throw new Error(`/auth_check gave no clear answer (${verdict.why})`);
    const works = verdict.kind === 'works';
    checked = { tokens, works };
    const inSeconds = Math.max(0, Math.round((replayAt(tokens) - clock.elapsed()) / 1000));
    log.error(
      { trouble: 'uncertain', generation, ...(works ? { inSeconds } : { detail: verdict.detail }) },
      works
        ? 'An exchange of the refresh token ended without a clear answer, so the token may be spent. The access token ' +
            'works, and serves until it is near its end; then the refresh token is sent once more. To know it at once, ' +
            'run `tokens recover`.'
        : 'An exchange of the refresh token ended without a clear answer, and the access token does not work: ' +
            'the refresh token is sent once more.',
    );
    return works;
  }
}
