import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { nextPair, replayAt, type HeldTokens } from './held-tokens.ts';
import { pairNamedIn } from './service/answer-text.ts';
import type { CheckAccess } from './service/auth-check.ts';
import type { KeptAnswer, Rescue } from './store/rescue.ts';
import type { NewPair, TokenStore } from './store/token-store.ts';
import { unreachableError, unwritableStoreError } from './token-errors.ts';

export type AnsweredPairs = ReturnType<typeof createAnsweredPairs>;

interface Parts {
  store: TokenStore;
  rescue: Rescue | undefined;
  checkAccess: CheckAccess;
  clock: Clock;
  log: Logger;
}

/** Pairs in answers that were not understood, such as a 503 whose body names one. */
export function createAnsweredPairs({ store, rescue, checkAccess, clock, log }: Parts) {
  const refused = new Set<string>();

  return {
    /** The kept answers to this refresh token, newest first. */
    kept: (tokens: HeldTokens) =>
      (rescue?.answersTo(tokens) ?? []).map(({ path, unread: { at, answer, namesPair } }) => ({
        path,
        status: answer.status,
        at,
        namesPair,
      })),
    /**
     * Saves the pair that follows into the store, if the service accepts its access token: that proves the pair, and
     * that the refresh token before it is spent.
     *
     * @param unproved saves the pair even if the service rejects its access token: for tokens that are lost anyway
     * @returns undefined when there is no such pair
     * @throws when the service or the store is unavailable: then nothing is known, and nothing may be sent
     */
    save: async (
      tokens: HeldTokens,
      unproved = false,
    ): Promise<'proved' | 'unproved' | undefined> => {
      const candidates = (rescue?.answersTo(tokens) ?? []).flatMap((kept) => pairIn(kept, tokens));
      const mayWait = clock.elapsed() < replayAt(tokens);
      const proved = await firstProved(candidates, mayWait);
      const taken = proved ?? (unproved ? candidates[0] : undefined);
      if (!taken) return undefined;
      await store.save(taken).catch((cause: unknown) => {
        throw unwritableStoreError(cause);
      });
      log.warn(
        { generation: taken.generation + 1 },
        'A token pair was found in an answer that was not understood, and was saved.',
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

  function pairIn({ unread }: KeptAnswer, tokens: HeldTokens): NewPair[] {
    const grant = pairNamedIn(unread.answer);
    const { pair } = tokens;
    // An error page may repeat the pair that was sent: that one works, and proves nothing.
    const isRepeated =
      grant?.refreshToken === pair.refreshToken || grant?.accessToken === pair.accessToken;
    if (!grant || isRepeated) return [];
    const { set, generation, attempt, at, home } = unread;
    return [
      { set, generation, attempt, at, home, latencyMs: 0, ...nextPair(grant, tokens, clock) },
    ];
  }
}
