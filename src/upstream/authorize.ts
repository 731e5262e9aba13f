import type { TokenKeeper } from '../tokens/keeper.ts';
import type { OutgoingRequest, Outcome, Send, Sender } from './request.ts';

/** The tokens that requests are sent with. */
export type BearerTokens = Pick<TokenKeeper, 'token' | 'afterRefusal' | 'accepted' | 'refused'>;

/** Sends a request once. Rejects with the abort reason of the sender's signal. */
export type Post = (request: OutgoingRequest, sender: Sender, token: string) => Promise<Outcome>;

/**
 * Sends each request with the newest token, and again with another one if the service refuses this one. Mutations are
 * sent again as well: the service refuses a token before it executes anything.
 */
export function authorize(tokens: BearerTokens, post: Post): Send {
  return async (request, sender) => {
    const first = tokens.token();
    // Awaited only if it has to be: each await costs as much as the step.
    let token = first instanceof Promise ? await first : first;
    for (let replays = 0; ; replays += 1) {
      const outcome = await post(request, sender, token.value);
      if (outcome.kind === 'answer') {
        tokens.accepted(token);
        return outcome;
      }
      if (!outcome.refusal) return outcome;
      const { status, detail } = outcome.refusal;
      const other = status === 401 ? await tokens.afterRefusal(token, detail, replays) : undefined;
      if (!other) {
        tokens.refused(token);
        return outcome;
      }
      token = other;
    }
  };
}
