import { NoAnswerError, type Clock } from '../clock.ts';
import type { AccessToken } from '../tokens/held-tokens.ts';
import { silentPrimaryError } from '../tokens/token-errors.ts';
import type { TokenKeeper } from '../tokens/token-keeper.ts';
import type { Channel, SharedTokenState } from './channel.ts';

/** The tokens as the gateway of a worker uses them; the keeper of the primary manages them. */
type WorkerTokens = Omit<TokenKeeper, 'health'>;

/** How often the keeper is checked for changes, ms. Until then a worker uses the older token, unless it is refused. */
const LOOK_MS = 500;
/** The same while there is no token set, and for a while after a change, because a refresh follows an import. */
const SOON_MS = 20;
const CHANGING_MS = 1_000;

export type TokenLender = ReturnType<typeof createTokenLender>;

/** Lends the tokens of the primary's keeper to its workers. */
export function createTokenLender(keeper: TokenKeeper, clock: Clock) {
  const stopping = new AbortController();
  const workers = new Set<Channel>();
  let last: SharedTokenState | undefined;
  lookForever().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error;
  });

  return {
    /** @returns the current state, with which the worker begins */
    lendTo: (worker: Channel): Promise<SharedTokenState> => {
      worker.answer('accessToken', async () => await keeper.accessToken());
      worker.answer('afterRefusal', ({ refused, detail }) => keeper.afterRefusal(refused, detail));
      worker.onReport('accepted', (token) => keeper.accepted(token));
      worker.onReport('refused', (token) => keeper.refused(token));
      workers.add(worker);
      return stateOf(keeper);
    },
    close: async () => stopping.abort(),
  };

  /** Polls, because the keeper changes in many ways: a refresh, an import, or a refresh by another process. */
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
  const { present, set, unauthorized } = keeper;
  // Without a set, the keeper would wait for the first import.
  return { present, set, unauthorized, token: present ? await tokenOf(keeper) : undefined };
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
    state.unauthorized === other.unauthorized &&
    state.token?.value === other.token?.value
  );
}

/**
 * Borrows the tokens of the primary. Requests use the token that was reported last; the worker requests another from
 * the primary only if the service refuses that token, or if it has none.
 */
export async function borrowTokens(primary: Channel): Promise<WorkerTokens> {
  let state = NO_TOKENS;
  let accepted: AccessToken | undefined;
  primary.onReport('tokens', (reported) => {
    // Tokens arrive as reports and as answers, and the slower of the two may bring an older token.
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
      // Reported again after a refusal, which another worker may have met.
      if (token.value === accepted?.value && !state.unauthorized) return;
      accepted = token;
      primary.report('accepted', token);
    },
    refused: (token) => {
      accepted = undefined;
      primary.report('refused', token);
    },
    get unauthorized() {
      return state.unauthorized;
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

const NO_TOKENS: SharedTokenState = {
  present: false,
  set: undefined,
  token: undefined,
  unauthorized: false,
};

/** Compares only tokens of the same set. */
function isOlderOf(token: AccessToken | undefined, other: AccessToken | undefined): boolean {
  return token !== undefined && token.set === other?.set && token.generation < other.generation;
}
