import { NoAnswerError, type Clock } from '../clock.ts';
import type { AccessToken } from '../tokens/held-tokens.ts';
import { silentPrimaryError } from '../tokens/token-errors.ts';
import type { TokenKeeper } from '../tokens/token-keeper.ts';
import type { Channel, SharedTokenState } from './channel.ts';

/** The tokens as the gateway of a worker uses them. The keeper of the primary has them. */
export type WorkerTokens = Omit<TokenKeeper, 'health'>;

/** Lends the tokens of the primary's keeper to its workers. */
export interface TokenLender {
  /** @returns what the worker can begin with */
  lendTo(worker: Channel): Promise<SharedTokenState>;
  close(): Promise<void>;
}

/** A worker learns of a newer token so much later, unless the service refuses the older one before. */
const LOOK_MS = 500;
/** While the first set is imported, which workers start beside, and for a while after a change: a refresh follows an import. */
const SOON_MS = 20;
const CHANGING_MS = 1_000;

export function createTokenLender(keeper: TokenKeeper, clock: Clock): TokenLender {
  const stopping = new AbortController();
  const workers = new Set<Channel>();
  let last: SharedTokenState | undefined;
  lookForever().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error;
  });

  return {
    lendTo: (worker) => {
      worker.answer('accessToken', async () => await keeper.accessToken());
      worker.answer('afterRefusal', ({ refused, detail }) => keeper.afterRefusal(refused, detail));
      worker.onReport('accepted', (token) => keeper.accepted(token));
      workers.add(worker);
      return stateOf(keeper);
    },
    close: async () => stopping.abort(),
  };

  /** The keeper changes in many ways: by a refresh, an import, or because another process refreshed. */
  async function lookForever(): Promise<void> {
    let changedAt = clock.elapsed();
    for (;;) {
      const isChanging = !last?.present || clock.elapsed() - changedAt < CHANGING_MS;
      await clock.sleep(isChanging ? SOON_MS : LOOK_MS, stopping.signal);
      const state = await stateOf(keeper);
      const isChanged = !isSame(state, last);
      for (const worker of workers) {
        if (worker.hasEnded) workers.delete(worker);
        else if (isChanged) worker.report('tokens', state);
      }
      if (isChanged) changedAt = clock.elapsed();
      last = state;
    }
  }
}

async function stateOf(keeper: TokenKeeper): Promise<SharedTokenState> {
  const { present, set } = keeper;
  // Without a set it would wait for the first import.
  return { present, set, token: present ? await tokenOf(keeper) : undefined };
}

async function tokenOf(keeper: TokenKeeper): Promise<AccessToken | undefined> {
  try {
    return await keeper.accessToken();
  } catch {
    return undefined;
  }
}

function isSame(state: SharedTokenState, other: SharedTokenState | undefined): boolean {
  return (
    state.present === other?.present &&
    state.set === other.set &&
    state.token?.value === other.token?.value
  );
}

/**
 * The tokens of the primary. Requests are sent with the token that was reported last, and only a refusal, or the lack
 * of a token, is a request to the primary.
 */
export async function borrowTokens(primary: Channel): Promise<WorkerTokens> {
  let state = NO_TOKENS;
  let accepted: AccessToken | undefined;
  primary.onReport('tokens', (reported) => {
    // Of two ways by which a token comes here, the slower one may bring an older one.
    const isOlder = isOlderOf(reported.token, state.token);
    state = isOlder ? { ...reported, token: state.token } : reported;
  });
  state = await primary.request('tokens', null);
  const take = <Token extends AccessToken | undefined>(token: Token): Token => {
    if (token && !isOlderOf(token, state.token)) state = { ...state, token };
    return token;
  };

  return {
    accessToken: () =>
      state.token ?? primary.request('accessToken', null).then(take).catch(explainSilence),
    afterRefusal: async (refused, detail) => {
      const { token } = state;
      if (token && isOlderOf(refused, token)) return token;
      return await primary
        .request('afterRefusal', { refused, detail })
        .then(take)
        .catch(explainSilence);
    },
    accepted: (token) => {
      if (token.value === accepted?.value) return;
      accepted = token;
      primary.report('accepted', token);
    },
    get present() {
      return state.present;
    },
    get set() {
      return state.set;
    },
    stop: () => Promise.resolve(),
  };
}

function explainSilence(error: unknown): never {
  throw error instanceof NoAnswerError ? silentPrimaryError(error) : error;
}

const NO_TOKENS: SharedTokenState = { present: false, set: undefined, token: undefined };

/** Tokens of two sets have no order. */
function isOlderOf(one: AccessToken | undefined, other: AccessToken | undefined): boolean {
  return one !== undefined && one.set === other?.set && one.generation < other.generation;
}
