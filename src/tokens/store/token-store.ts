import { within, type Clock } from '../../clock.ts';
import type { TokenPair } from '../token-set.ts';

/**
 * Where the token set is kept. Every method that writes is one durable transaction: once its promise has resolved, no
 * crash and no power cut undoes it. If it rejects, the outcome is unknown: a connection may end after the transaction
 * was committed. So `claim`, `endAttempt` and `save` can be repeated with the same attempt, which settles the outcome
 * and changes nothing twice.
 *
 * A claim says "a process is about to send the refresh token of this generation, or has sent it". It is the lock of an
 * exchange: of all processes on one store, only the one that has the claim may send. It outlives its process, and then
 * says that the refresh token may be spent.
 *
 * There is one clock, that of the store: it computes ages, and how long a claim lives. For a database server this is
 * the server's clock; for a file it is the wall clock of the machine that all its processes share. That clock may be set:
 * so a claim also ends when a process has seen it for its whole length, by a clock that is never set.
 */
export interface TokenStore {
  /** Identifies the store to people, without credentials. */
  readonly description: string;
  /** Notices for the operator after the store was opened, for instance about repaired permissions. */
  readonly notices: readonly string[];
  /** Undefined until it was read. */
  readonly layout?: StoreLayout | undefined;
  /** Why it cannot be written, if that is known without writing. */
  readonly unwritable?: string | undefined;
  /** Why this store would lack a pair that it has saved: its file is an older copy, or a failover lost commits. */
  readonly behind: 'older' | 'failover';
  /**
   * The newest pair of the current set; null if nothing was ever imported.
   *
   * @throws StoreUnavailableError if it cannot be reached now
   * @throws StoreGoneError if it was removed while it was open
   * @throws StoreUnreadableError if it is damaged, or refuses this process
   * @throws SealError if it cannot be decrypted
   */
  read(): Promise<StoredTokens | null>;
  /** Begins a new set, one generation after the last one. Earlier sets stay in the store. */
  import(imported: NewSet): Promise<ImportOutcome>;
  /**
   * Takes back an import whose refresh token the service rejected: the set before it is the current one again, unless
   * that is lost or moved.
   *
   * @returns whether it was taken back
   */
  withdraw(set: string): Promise<boolean>;
  /**
   * Takes the right to exchange `generation` of `set`. Undefined if there is a newer generation or another set, if the
   * set was moved, while another exchange is under way, or if the others have to be asked again (`askOthers`). An earlier
   * claim whose process ended, or whose exchange was uncertain, is taken over.
   */
  claim(claim: NewClaim): Promise<Claim | undefined>;
  /**
   * Records how an exchange that gave no pair ended, and ends its claim, except after `uncertain`. After
   * `invalid-grant` the set is lost if its generation is still the head. After `early-or-spent` the set does not
   * count as lost until another exchange of that generation ends with `invalid-grant`.
   */
  endAttempt(attempt: string, ending: Ending): Promise<void>;
  /**
   * Saves the pair that an exchange of `generation` gave, and ends its claim. The pair is always inserted, even if the
   * claim is no longer ours: the service gives one pair for one refresh token, so it cannot be a wrong one. The head
   * of the set only moves forward, and a lost set is valid again. It moves by more than one generation if the store
   * is behind: the refresh tokens between are spent.
   *
   * A set that the store does not know is taken in. If this is an older copy of the set's `home`, the set becomes the
   * current one, unless the copy has a newer generation. If this is another store, the set goes behind all that it
   * has. The caller has made sure that the pair belongs here, or that its store was in this place.
   *
   * @returns whether the pair is, or was, a head of its set; if not, it is a second pair of one generation, or of one
   *   before the head, and is kept beside the first
   * @throws if the store does not know the set and the pair has no home, or belongs to another service
   */
  save(saved: NewPair): Promise<boolean>;
  /**
   * Asks all other processes to save the pair that they have, if this store lacks it: it may be an older copy. Their
   * answers arrive within `ANSWERS_MS`. From then on, `claim` refuses if the store was replaced since.
   *
   * @returns false, without asking, if they were asked before and the store is still the same one
   */
  askOthers?(): Promise<boolean>;
  /** Whether it has held this pair in any set, so that saving it would change nothing. */
  holds(saved: NewPair): Promise<boolean>;
  /** The audit trail, newest first. */
  history(limit: number): Promise<HistoryEntry[]>;
  /**
   * Gives the set away: from this transaction on, it cannot be claimed here. Repeated for the same target it returns
   * the same set, so that an interrupted move can be finished.
   *
   * @throws Error with a message for the operator if there is no set, or it is lost, was moved elsewhere, or has an
   *   exchange that is under way or uncertain
   */
  moveOut(move: { to: string; replica: string }): Promise<MovedSet>;
  /** Takes back a set that could not be moved. */
  moveBack(to: string): Promise<void>;
  /**
   * Takes over a set. Repeated, it changes nothing.
   *
   * @throws Error with a message for the operator if it would replace a set that is neither lost nor moved
   */
  moveIn(moved: MovedSet & { replica: string }): Promise<void>;
  /**
   * Calls `onChange` when another process may have changed the store, when the connection is lost, and when it is back.
   * Only a hint: the store may not be able to announce changes, so it is polled as well.
   */
  watch?(onChange: () => void): void;
  /** Also ends the watch. */
  close(): Promise<void>;
}

/** The layout of the store's content. */
export interface StoreLayout {
  /** The layout when this process opened the store. */
  readonly found: number;
  /** The layout when the store was last read. A process that may write converts an older layout. */
  readonly now: number;
}

/** What the operator should know after this process has changed the layout; undefined if it has not. */
export function upgradeNotice({ layout }: Pick<TokenStore, 'layout'>): string | undefined {
  if (!layout || layout.found === layout.now) return undefined;
  return `The token store was brought from layout ${layout.found} to layout ${layout.now}. Earlier versions cannot open it any more.`;
}

/**
 * How long the answers to `askOthers` take at most, ms: by then, connected processes have saved what the store lacks.
 */
export const ANSWERS_MS = 2_000;

/** The store cannot be reached now. It may be back at any moment. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}

/** The store was removed while it was open, or something else is in its place. */
export class StoreGoneError extends Error {
  override readonly name = 'StoreGoneError';
}

/**
 * The store answers, and cannot be read: tables or rows were removed or altered, or it refuses this process. Unlike a
 * store that is unavailable, it does not come back by itself.
 */
export class StoreUnreadableError extends Error {
  override readonly name = 'StoreUnreadableError';
}

/** It was written by a newer version of the gateway. */
export class StoreNewerError extends StoreUnreadableError {
  constructor(layout: unknown) {
    super(`it was written by a newer version (layout ${String(layout)})`);
  }
}

export interface StoredTokens {
  /** Identifies the store: copies of it have the same id, a newly created store has another. */
  readonly storeId: string;
  /** Identifies this import and what was refreshed from it; never reused. */
  readonly set: string;
  /** The service this set belongs to. */
  readonly baseUrl: string;
  /** Counts imports and refreshes, from 1, over all sets. */
  readonly generation: number;
  readonly pair: TokenPair;
  /** Of the exchange that gave the pair, or `import`, or `moved`. */
  readonly attempt: string;
  /** Identifies the refresh token to people: the same in every store and every process. */
  readonly fingerprint: string;
  /** When the pair was received, by the store's clock, ms: for people. */
  readonly savedAt: number;
  /** Milliseconds since then, by the store's clock; negative after that was set back. */
  readonly age: number;
  readonly lost: boolean;
  /** The store that the set was moved to. This store may not refresh the set any more. */
  readonly movedTo: string | null;
  /** It came from a token link and was never refreshed, so the age that it had at the import is unknown. */
  readonly imported: boolean;
  readonly claim: StoredClaim | null;
  /** Exchanges of this very refresh token that were begun and never clearly answered. */
  readonly unanswered: number;
  /** The number of further pairs of this generation, beside the one in use. */
  readonly surplus: number;
  /** An exchange of this very refresh token was refused while its access token worked: as too early, or as spent. */
  readonly refusedEarly: boolean;
  /** The service has refused an exchange as too early before, and has accepted the same refresh token later. */
  readonly refusesEarly: boolean;
}

export interface StoredClaim {
  readonly attempt: string;
  /** Milliseconds since it was taken, by the store's clock. */
  readonly age: number;
  /** Its exchange may be under way. Otherwise it was uncertain, or its process has ended. */
  readonly live: boolean;
  /**
   * Its end lies too far ahead, because the store's clock was set back since, and is not recorded yet. Each process has
   * to wait for its length by its own clock, unless another one records that it is uncertain.
   */
  readonly isDatedAhead: boolean;
}

/** How long an exchange may take from its claim on, ms: until then its pair may still be saved. */
export const CLAIM_LIFE_MS = 150_000;

export interface NewClaim {
  readonly set: string;
  readonly generation: number;
  readonly attempt: string;
  /**
   * The attempt of the earlier claim that the caller has seen; null if it saw none. If the store has another claim, the
   * new one is refused: the process of the other claim may just have ended, and have left a pair in a rescue file.
   */
  readonly over?: string | null;
  /**
   * Whether the caller knows that this refresh token was refused early. If it does not, and it was, the claim is
   * refused.
   */
  readonly knowsRefusal?: boolean;
  /** How long its exchange may take, ms: for stores that cannot see whether a process still runs. */
  readonly lifeMs: number;
  readonly replica: string;
}

export interface Claim {
  /**
   * Whether no other process can have an exchange of this generation under way. Not so if an earlier claim timed out
   * while its process may still run, or if the store may have lost a claim in a failover. Then a pair of this
   * generation may still be saved within the life of a claim.
   */
  readonly exclusive: boolean;
}

export interface NewSet {
  readonly baseUrl: string;
  readonly pair: TokenPair;
  readonly replica: string;
  /** The head that it is to follow; null for an empty store. */
  readonly after: { readonly set: string; readonly generation: number } | null;
}

export type ImportOutcome =
  | { readonly kind: 'imported'; readonly stored: StoredTokens }
  /** Another process imported or refreshed first. */
  | { readonly kind: 'overtaken' }
  /** The store has held this refresh token before: it is in use (`current`) or spent. */
  | { readonly kind: 'known'; readonly generation: number; readonly current: boolean };

export interface NewPair {
  readonly set: string;
  /** The generation that was exchanged; the pair is the next one. */
  readonly generation: number;
  readonly attempt: string;
  readonly pair: TokenPair;
  readonly outcome: PairOutcome;
  /** When its exchange began, by the wall clock of this machine, ms. A rescue file is read on the same machine. */
  readonly at: number;
  readonly latencyMs: number;
  /** The store that it belongs to, and the service of its set. */
  readonly home?: {
    /** The description of the store. */
    readonly store: string;
    readonly storeId: string;
    readonly baseUrl: string;
  };
}

/** What an answer with status 200 held. */
export type PairOutcome =
  'rotated' | 'same-refresh-token' | 'without-refresh-token' | 'without-access-token';

export interface Ending {
  readonly outcome:
    | 'unsent'
    | 'rate-limited'
    | 'refused'
    | 'uncertain'
    /** Refused while the access token worked. */
    | 'early-or-spent'
    | 'invalid-grant';
  readonly latencyMs: number;
}

export interface HistoryEntry {
  /** By the store's clock, ms: of an exchange, when it was claimed. */
  readonly at: number;
  readonly generation: number;
  readonly attempt: string;
  /**
   * `begun` is an exchange under way, or one whose process ended before it recorded how it ended. `early-or-spent`
   * becomes `early` when a later exchange of the same refresh token gives a pair, and `spent` when that is refused too.
   */
  readonly outcome:
    | PairOutcome
    | Ending['outcome']
    | 'begun'
    | 'early'
    | 'spent'
    | 'imported'
    | 'moved-in'
    | 'moved-out';
  readonly latencyMs: number | null;
  readonly replica: string;
}

export interface MovedSet {
  readonly baseUrl: string;
  readonly generation: number;
  readonly pair: TokenPair;
  /** Milliseconds since the pair was received. */
  readonly age: number;
  readonly imported: boolean;
  readonly refusedEarly: boolean;
  readonly refusesEarly: boolean;
  /** Of all refresh tokens that the source ever held. */
  readonly fingerprints: readonly FingerprintRing[];
}

/** Fingerprints of refresh tokens, and the key that they were made with. */
export interface FingerprintRing {
  /** 32 bytes in base64. */
  readonly key: string;
  /** The generation that first had a refresh token, by its fingerprint. */
  readonly known: Record<string, number>;
}

/**
 * A store whose calls always settle, although a disk or a network may hang. A call that was given up may still succeed
 * later: such a claim is ended, and a save changes nothing when it is repeated.
 */
export interface BoundedStore extends TokenStore {
  askOthers(): Promise<boolean>;
  /** From now on every call but a save is given up after a second: the process is about to end. */
  hurry(): void;
}

const LIMIT_MS = 10_000;
const HURRIED_MS = 1_000;
const WHOSE = 'the token store';

export function boundStore(store: TokenStore, clock: Clock): BoundedStore {
  let hurried = false;
  const brief = <T>(work: Promise<T>) =>
    within(clock, work, () => (hurried ? HURRIED_MS : LIMIT_MS), WHOSE);

  return {
    description: store.description,
    behind: store.behind,
    get notices() {
      return store.notices;
    },
    get layout() {
      return store.layout;
    },
    get unwritable() {
      return store.unwritable;
    },
    read: () => brief(store.read()),
    askOthers: async () => (store.askOthers ? brief(store.askOthers()) : false),
    holds: (saved) => brief(store.holds(saved)),
    history: (limit) => brief(store.history(limit)),
    claim: async (claim) => {
      const claiming = store.claim(claim);
      try {
        return await brief(claiming);
      } catch (error) {
        // The refresh token is not sent for this claim any more.
        const forgo = () => store.endAttempt(claim.attempt, { outcome: 'unsent', latencyMs: 0 });
        claiming.then((claimed) => claimed && forgo()).catch(() => {});
        throw error;
      }
    },
    import: (imported) => brief(store.import(imported)),
    withdraw: (set) => brief(store.withdraw(set)),
    endAttempt: (attempt, ending) => brief(store.endAttempt(attempt, ending)),
    save: (saved) => within(clock, store.save(saved), () => LIMIT_MS, WHOSE),
    moveOut: (move) => brief(store.moveOut(move)),
    moveBack: (to) => brief(store.moveBack(to)),
    moveIn: (moved) => brief(store.moveIn(moved)),
    watch: (onChange) => store.watch?.(onChange),
    close: () => store.close(),
    hurry: () => void (hurried = true),
  };
}
