import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { CheckAccess } from './service/auth-check.ts';
import { isSamePair, replayAt, type Head } from './head.ts';

/**
 * What to do about an exchange that ended without a clear answer. As long as the access token works, there
 * is something to lose (some services revoke everything when a refresh token comes twice), so the refresh
 * token is sent once more only when that access token is near its end, or does not work.
 */
export interface Doubt {
  /** An exchange of this process ended so. */
  begun(head: Head, why: string): void;
  /** When something is to be done without anybody asking, by `clock.elapsed()`. */
  dueAt(head: Head): number;
  /** Asks the service, where that is not known yet. @throws when it gives no clear answer */
  mustReplay(head: Head): Promise<boolean>;
  /** Seconds until the next try, after several. */
  patience(head: Head): number;
}

interface DoubtParts {
  checkAccess: CheckAccess;
  clock: Clock;
  log: Logger;
}

const FIRST_PATIENCE_S = 1;
const LONGEST_PATIENCE_S = 30 * 60;

export function createDoubt({ checkAccess, clock, log }: DoubtParts): Doubt {
  let checked: { head: Head; works: boolean } | undefined;
  const known = (head: Head) =>
    checked && isSamePair(checked.head, head) && checked.head.unanswered === head.unanswered
      ? checked
      : undefined;

  return {
    begun: ({ generation }, why) =>
      log.error({ trouble: 'uncertain', generation, why }, 'rotation uncertain: no clear answer'),
    dueAt: (head) => (known(head)?.works ? replayAt(head) : clock.elapsed()),
    mustReplay: async (head) => {
      // Its life is over: nothing is left to lose, whether or not the service can be asked.
      if (clock.elapsed() >= replayAt(head)) return true;
      return !(known(head)?.works ?? (await check(head)));
    },
    patience: ({ unanswered }) =>
      Math.min(LONGEST_PATIENCE_S, FIRST_PATIENCE_S * 2 ** Math.max(0, unanswered - 2)),
  };

  async function check(head: Head): Promise<boolean> {
    const { generation, pair } = head;
    const verdict = await checkAccess(pair.accessToken);
    if (verdict.kind === 'unknown')
      throw new Error(`/auth_check gave no clear answer (${verdict.why})`);
    const works = verdict.kind === 'works';
    checked = { head, works };
    const inSeconds = Math.max(0, Math.round((replayAt(head) - clock.elapsed()) / 1000));
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
