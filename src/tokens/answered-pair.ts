import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { replayAt, type Head } from './head.ts';
import { nextPair } from './next-pair.ts';
import { pairNamedIn } from './service/answer-text.ts';
import type { CheckAccess } from './service/auth-check.ts';
import type { Rescue } from './store/rescue.ts';
import type { KeptAnswer } from './store/unread-answers.ts';
import type { NewPair, TokenStore } from './store/token-store.ts';
import { unreachableError, unwritableStoreError } from './token-errors.ts';

/** What answers hold that were not understood: the pair that a 503 names, for instance. */
export interface AnsweredPairs {
  /** Those to the refresh token of the head, newest first. */
  kept(head: Head): readonly { path: string; status: number; at: number; namesPair: boolean }[];
  /**
   * Saves the pair that follows the head into the store, when the service takes its access token: that proves the
   * pair, and that the refresh token of the head is spent.
   *
   * @param unproved also when the service does not take it: for a head that is lost anyway
   * @returns undefined when there is none
   * @throws when the service cannot be asked, or the store not written: then nothing is known, and nothing may be sent
   */
  takeUp(head: Head, unproved?: boolean): Promise<'proved' | 'unproved' | undefined>;
}

export interface AnsweredPairsParts {
  store: TokenStore;
  rescue: Rescue | undefined;
  checkAccess: CheckAccess;
  clock: Clock;
  log: Logger;
}

export function createAnsweredPairs(parts: AnsweredPairsParts): AnsweredPairs {
  const { store, rescue, checkAccess, clock, log } = parts;
  const refused = new Set<string>();

  return {
    kept: (head) =>
      (rescue?.answersTo(head) ?? []).map(({ path, unread: { at, answer, namesPair } }) => ({
        path,
        status: answer.status,
        at,
        namesPair,
      })),
    takeUp: async (head, unproved = false) => {
      const candidates = (rescue?.answersTo(head) ?? []).flatMap((kept) => pairIn(kept, head));
      const mayWait = clock.elapsed() < replayAt(head);
      const proved = await firstProved(candidates, mayWait);
      const taken = proved ?? (unproved ? candidates[0] : undefined);
      if (!taken) return undefined;
      await store.save(taken).catch((cause: unknown) => {
        throw unwritableStoreError(cause);
      });
      log.warn(
        { generation: taken.generation + 1 },
        'A token pair was found in an answer that was not understood, and is saved now.',
      );
      return proved ? 'proved' : 'unproved';
    },
  };

  async function firstProved(
    candidates: readonly NewPair[],
    mayWait: boolean,
  ): Promise<NewPair | undefined> {
    for (const candidate of candidates) {
      const { accessToken } = candidate.pair;
      if (refused.has(accessToken)) continue;
      const verdict = await checkAccess(accessToken);
      if (verdict.kind === 'works') return candidate;
      if (verdict.kind === 'refused') refused.add(accessToken);
      else if (mayWait) throw unreachableError(new Error(verdict.why));
    }
    return undefined;
  }

  function pairIn({ unread }: KeptAnswer, head: Head): NewPair[] {
    const grant = pairNamedIn(unread.answer);
    const { pair } = head;
    // A page of errors may repeat what was sent: that one works, and proves nothing.
    const isRepeated =
      grant?.refreshToken === pair.refreshToken || grant?.accessToken === pair.accessToken;
    if (!grant || isRepeated) return [];
    const { set, generation, attempt, at, home } = unread;
    return [{ set, generation, attempt, at, home, latencyMs: 0, ...nextPair(grant, head, clock) }];
  }
}
