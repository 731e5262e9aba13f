import { createHash, randomUUID } from 'node:crypto';
import { parseJson, readPair, type Pair } from './pair.ts';

/**
 * Everything that a token store holds, as one plain value. It changes only by the rules below, each within one durable
 * transaction of its store. All times are the store's clock, in ms.
 */
export interface State {
  readonly version: typeof VERSION;
  /** Identifies the store: copies of it have the same id. */
  readonly id: string;
  /** Identifies the token set: each import begins another one. */
  readonly set: string;
  /** The base URL of the service that the pair belongs to. */
  readonly service: string;
  /** Counts imports and exchanges. It never goes back. */
  readonly generation: number;
  readonly pair: Pair;
  readonly savedAt: number;
  /** When the access token expires: earlier than its pair says once the service was seen to refuse it as expired. */
  readonly expiresAt: number;
  /** The pair came from an import and was never exchanged, so its real age is unknown. */
  readonly imported: boolean;
  /** The access token before this one, until it expires: nodes of the service may learn of the new one late. */
  readonly previous: PreviousToken | null;
  /** "A process may be sending the refresh token of this generation, or has sent it." */
  readonly claim: Claim | null;
  /**
   * The beginning of an answer to this refresh token that was not understood, at most 64 KiB: `tokens recover` looks for a
   * pair in it.
   */
  readonly answer: string | null;
  /** How often the service refused this very refresh token with `invalid_grant`. */
  readonly refusals: number;
  /** When it refused it last; 0: it did not. */
  readonly refusedAt: number;
  /** The service exchanges a refresh token only after its access token has expired. */
  readonly refusesEarly: boolean;
  /** Nothing may be sent before this time: the service limited the rate of exchanges. */
  readonly notBefore: number;
  readonly lost: boolean;
  /** The store that the set was moved to: it is not exchanged from here any more. */
  readonly movedTo: string | null;
  /** What the last import replaced, until the imported pair was exchanged. */
  readonly replaced: State | null;
  /** The audit trail, newest first. */
  readonly events: readonly Event[];
}

interface PreviousToken {
  readonly accessToken: string;
  readonly generation: number;
  readonly expiresAt: number;
}

export interface Claim {
  readonly attempt: string;
  /** `host/pid` of the process, for people: a claim is never freed because of it. */
  readonly by: string;
  readonly until: number;
  /** Its exchange ended without a clear answer. Otherwise it may be under way. */
  readonly isUnclear: boolean;
  /** The uncertain one that it followed, which holds again if nothing was sent. */
  readonly over: Claim | null;
}

interface Event {
  readonly at: number;
  readonly generation: number;
  readonly what: 'imported' | 'saved' | 'moved' | Ending['kind'] | 'withdrawn';
  readonly by: string;
  /** Of the refresh token: for people, and to recognize a spent one. */
  readonly fingerprint: string;
}

/**
 * What a call does to the state. A store may run a rule again after a commit whose outcome is unknown, so each rule
 * recognizes its own work.
 */
export type Rule<T> = (
  state: State | null,
  now: number,
) => { readonly next?: State; readonly result: T };

export const VERSION = 1;
/** Longer than a refresh token may be sent after its claim (25 s) plus the wait for its answer (120 s). */
export const CLAIM_MS = 150_000;
/** The longest pause that a service may ask for (Retry-After). */
export const LONGEST_PAUSE_MS = 3_600_000;
const EVENTS_KEPT = 200;

/** Whether the exchange of a claim may be under way. */
export function isLive(claim: Claim | null, now: number): boolean {
  // A claim that ends later than one made now comes from a clock that was set back: it would block for ever.
  return claim?.isUnclear === false && now < claim.until && claim.until - now <= CLAIM_MS;
}

/** Whether the refresh token may be spent: an exchange of it began, and its outcome is not known. */
export function isUncertain({ claim }: State, now: number): boolean {
  return claim !== null && !isLive(claim, now);
}

/** When the refresh token ends. After that it is not sent any more. */
export function endsAt({ pair, savedAt }: Pick<State, 'pair' | 'savedAt'>): number {
  return savedAt + pair.refreshTokenExpiresIn * 1000;
}

/** Whether the next pair can only come from an import, or from a process that has received it and not saved it yet. */
export function isLost(state: State, now: number): boolean {
  return state.lost || now >= endsAt(state);
}

/** Whether a set can be refreshed from the store that has it. */
function isInUse(state: State, now: number): boolean {
  return state.movedTo === null && !isLost(state, now);
}

/** When the refresh token is due to be sent. Infinity: never */
export function dueAt(state: State, now: number): number {
  return isInUse(state, now) ? Math.max(state.notBefore, dueByItself(state, now)) : Infinity;
}

function dueByItself(state: State, now: number): number {
  const { savedAt, expiresAt, imported, claim, refusals, refusedAt, refusesEarly } = state;
  const end = Math.min(expiresAt, endsAt(state));
  // Negative where the clock of the store was set back.
  const life = Math.max(0, end - savedAt);
  // Refused before the expiry, it may only have been too early; and the clocks of the service's servers may differ.
  if (refusals > 0) {
    const delay = AFTER_REFUSAL_MS[Math.min(refusals, AFTER_REFUSAL_MS.length) - 1]!;
    return Math.max(expiresAt, refusedAt) + delay;
  }
  // It may be spent: as long as the access token works, there is something to lose.
  if (claim) {
    const over = isLive(claim, now) ? claim.until : 0;
    return Math.max(over, end - Math.min(LAST_MINUTES_MS, life / 10));
  }
  // Of unknown age.
  if (imported) return 0;
  return refusesEarly ? expiresAt : savedAt + life * (2 / 3);
}

const LAST_MINUTES_MS = 5 * 60_000;
const AFTER_REFUSAL_MS = [5_000, 60_000, 600_000];

/**
 * Whether one more `invalid_grant` proves that the refresh token is spent or revoked, the access token being expired.
 * An import may have been spent before it was imported, which has to show while somebody watches.
 */
export function isSpentIfRefused({ imported, refusals }: State): boolean {
  return refusals >= (imported ? 1 : AFTER_REFUSAL_MS.length);
}

interface Import {
  readonly pair: Pair;
  readonly service: string;
  readonly by: string;
  /** Whether a set that is in use may be replaced. */
  readonly replace: boolean;
}

/** `known`: this store has already seen the refresh token, which is therefore in use or spent. */
export type Imported = 'imported' | 'in use' | 'known';

export function importPair({ pair, service, by, replace }: Import): Rule<Imported> {
  return (state, now) => {
    const fingerprint = fingerprintOf(pair);
    if (state?.events.some((event) => event.fingerprint === fingerprint)) {
      return { result: 'known' };
    }
    const replaced = state && isInUse(state, now) ? { ...state, events: [], replaced: null } : null;
    if (replaced && !replace) return { result: 'in use' };
    const next: State = {
      ...BLANK,
      id: state?.id ?? randomUUID(),
      set: randomUUID(),
      service,
      generation: (state?.generation ?? 0) + 1,
      pair,
      savedAt: now,
      expiresAt: now + pair.expiresIn * 1000,
      imported: true,
      refusesEarly: state?.refusesEarly ?? false,
      replaced,
      events: state?.events ?? [],
    };
    return { next: withEvent(next, now, 'imported', by), result: 'imported' };
  };
}

interface ClaimRequest {
  readonly attempt: string;
  readonly generation: number;
  /** The attempt without an outcome that the caller knows of, and sends the refresh token again after. */
  readonly over: string | null;
  readonly by: string;
  /** Sends a refresh token that is lost by all that is known: `tokens recover` has nothing to lose. */
  readonly evenIfLost?: boolean;
}

/** Takes the right to send the refresh token of a generation. */
export function takeClaim(request: ClaimRequest): Rule<boolean> {
  const { attempt, generation, over, by, evenIfLost = false } = request;
  return (state, now) => {
    if (!state || state.generation !== generation || state.movedTo !== null) {
      return { result: false };
    }
    if (state.claim?.attempt === attempt) return { result: isLive(state.claim, now) };
    const isOthers = isLive(state.claim, now) || (state.claim?.attempt ?? null) !== over;
    if (isOthers || (isLost(state, now) && !evenIfLost) || now < state.notBefore) {
      return { result: false };
    }
    const before = state.claim && { ...state.claim, over: null };
    const taken = { attempt, by, until: now + CLAIM_MS, isUnclear: false, over: before };
    return { next: { ...state, claim: taken }, result: true };
  };
}

/**
 * The state with the pair that an exchange of the held one returned.
 *
 * @param at the time of that exchange, from which its life counts
 */
export function successor(state: State, pair: Pair, at: number): State {
  const { generation, refusals, expiresAt, refusesEarly } = state;
  const { accessToken } = state.pair;
  return {
    ...state,
    ...BLANK,
    generation: generation + 1,
    pair,
    savedAt: at,
    expiresAt: at + pair.expiresIn * 1000,
    imported: false,
    previous: { accessToken, generation, expiresAt },
    // What the service accepts after it has refused it, it had refused as too early.
    refusesEarly: refusesEarly || refusals > 0,
    replaced: null,
  };
}

/**
 * Saves a pair that was received, or that the store has lost: emptied, replaced by an older copy, or after a failover that
 * lost the last commit. It never depends on the claim: one refresh token gives one pair, so it cannot be a wrong one, and
 * the generation only grows. A claim of the pair that its holder knows of is saved too.
 */
export function save(received: State, by: string): Rule<State> {
  return (state, now) => {
    if (state && state.id !== received.id) return { result: state };
    if (!state || state.generation < received.generation) {
      const { events } = state ?? received;
      const next = withEvent({ ...received, events }, now, 'saved', by);
      return { next, result: next };
    }
    // An import replaced the set during its exchange: the newer pair is what it would be withdrawn to.
    const isReplaced = state.replaced?.set === received.set;
    const replaced = { ...received, events: [], replaced: null };
    return isReplaced ? { next: { ...state, replaced }, result: state } : { result: state };
  };
}

/** How an attempt ended that gave no pair. */
export type Ending =
  /** Certainly nothing was sent, or nothing was processed. */
  | { readonly kind: 'not exchanged'; readonly notBefore?: number }
  /** `invalid_grant` */
  | { readonly kind: 'refused' | 'lost' }
  | { readonly kind: 'unclear'; readonly answer: string | null };

/** Ends an attempt. After `unclear` its claim stays: the refresh token may be spent. */
export function endAttempt(attempt: string, ending: Ending, by: string): Rule<State | null> {
  return (state, now) => {
    if (state?.claim?.attempt !== attempt || state.claim.isUnclear) return { result: state };
    const isWithdrawn = ending.kind === 'lost' && state.replaced !== null;
    const what = isWithdrawn ? 'withdrawn' : ending.kind;
    const next = withEvent(ended(state, state.claim, ending, now), now, what, by);
    return { next, result: next };
  };
}

function ended(state: State, open: Claim, ending: Ending, now: number): State {
  switch (ending.kind) {
    case 'not exchanged':
      return { ...state, claim: open.over, notBefore: ending.notBefore ?? state.notBefore };
    case 'unclear':
      return {
        ...state,
        claim: { ...open, isUnclear: true },
        // A later try sends a spent token, so what it gets must not displace the next pair.
        answer: pairIn(state) ? state.answer : (ending.answer ?? state.answer),
      };
    case 'refused':
    case 'lost': {
      // The imported refresh token was spent: what the import replaced is in use again.
      if (ending.kind === 'lost' && state.replaced) {
        return { ...state.replaced, generation: state.generation + 1, events: state.events };
      }
      const refused = { refusals: state.refusals + 1, refusedAt: now };
      return { ...state, ...refused, claim: null, lost: ending.kind === 'lost' };
    }
  }
}

/** Returns the pair in an answer that was not understood. */
export function pairIn({ answer, pair }: Pick<State, 'answer' | 'pair'>): Pair | undefined {
  const found = answer === null ? undefined : readPair(parseJson(answer), pair);
  return found?.accessToken === pair.accessToken ? undefined : found;
}

/** Records that the service refuses the access token as expired, although the clock says otherwise. */
export function expired(generation: number): Rule<State | null> {
  return (state, now) => {
    if (state?.generation !== generation || state.expiresAt <= now) return { result: state };
    const next = { ...state, expiresAt: now };
    return { next, result: next };
  };
}

/**
 * Gives the set away, and returns what to place in the target; null: it cannot be moved now. Repeated for the same target,
 * it returns the same state, so that a move can be finished.
 */
export function moveTo(target: string, by: string): Rule<State | null> {
  return (state, now) => {
    if (state?.movedTo === target) return { result: state };
    if (!state || !isInUse(state, now) || state.claim) return { result: null };
    const next = withEvent({ ...state, movedTo: target }, now, 'moved', by);
    return { next, result: next };
  };
}

/** Places a set that was moved here. Only into a store without tokens, or again into the one that has this set. */
export function receiveMove(moved: State, by: string): Rule<'placed' | 'in use'> {
  return (state, now) => {
    // The generation tells a move that is repeated from a set that comes back.
    const isRepeated = state?.set === moved.set && state.generation > moved.generation;
    if (isRepeated) return { result: 'placed' };
    if (state && isInUse(state, now)) return { result: 'in use' };
    const id = state?.id ?? randomUUID();
    const generation = Math.max(moved.generation, state?.generation ?? 0) + 1;
    const next = { ...moved, id, generation, movedTo: null, previous: null };
    return { next: withEvent(next, now, 'moved', by), result: 'placed' };
  };
}

const BLANK = {
  version: VERSION,
  previous: null,
  claim: null,
  answer: null,
  refusals: 0,
  refusedAt: 0,
  notBefore: 0,
  lost: false,
  movedTo: null,
} as const;

function withEvent(state: State, at: number, what: Event['what'], by: string): State {
  const { generation, pair } = state;
  const event = { at, generation, what, by, fingerprint: fingerprintOf(pair) };
  return { ...state, events: [event, ...state.events].slice(0, EVENTS_KEPT) };
}

/** Identifies a refresh token without storing it: the first digits of its SHA-256, the same in every store. */
export function fingerprintOf({ refreshToken }: Pair): string {
  return createHash('sha256').update(refreshToken).digest('hex').slice(0, 12);
}
