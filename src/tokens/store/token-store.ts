import type { TokenPair } from '../token-set.ts';

/**
 * Where the token set lives. Every method that writes is one durable transaction: when its promise
 * resolves, a crash or a power cut does not undo it; when it rejects, nothing was changed.
 *
 * The mark says "somebody is about to send this generation's refresh token, or has". It is the lock of a
 * rotation: of all processes on one store, only the one that wrote it may send. It outlives its process,
 * and then says that the refresh token may be spent.
 */
export interface TokenStore {
  /** For people: which store this is, without credentials. */
  readonly description: string;
  /** What the operator should hear once, after opening: rights that were repaired, a store that cannot be written. */
  readonly notices: readonly string[];
  /** Why it cannot be written, where that could be seen without writing. */
  readonly unwritable?: string | undefined;
  /**
   * The newest pair of the current set, or null when nothing was ever imported.
   *
   * @throws StoreGoneError when what was opened is not there any more, and nothing that could be read instead
   */
  read(): Promise<StoredTokens | null>;
  /** Begins a new set, one generation after the last one. The sets before it stay in the store. */
  import(imported: NewSet): Promise<ImportOutcome>;
  /**
   * Takes back an import whose refresh token the service refused: the set before it is the current one
   * again, unless that is lost or was moved away.
   *
   * @returns whether it was taken back
   */
  withdraw(set: string): Promise<boolean>;
  /**
   * Takes the one right to exchange `generation` of `set`: undefined when the head is another one by now,
   * when the set was moved away, or while another exchange is under way. An earlier mark whose process
   * ended, or that was settled as uncertain, is taken over.
   */
  mark(mark: NewMark): Promise<Mark | undefined>;
  /**
   * How an exchange that gave no pair ended; gives the right to exchange back. The mark is cleared, except
   * after `uncertain`. `invalid-grant` makes the set lost, where its generation is still the head.
   */
  settle(attempt: string, ending: Ending): Promise<void>;
  /**
   * Keeps the pair that an exchange of `generation` gave, and gives the right to exchange back. Always
   * inserted, also when the mark is no longer ours: the service gives one answer for one refresh token, so
   * that is fence enough. The head of the set moves only forward, and is found again then, if it was lost. It
   * moves by more than one generation where this is an older copy of the store, put in its place: what it has
   * missed is spent. Saving the same once more changes nothing.
   *
   * A set that the store does not know is taken with its pair where its `home` is this store. Where this is an
   * older copy of that store, the set becomes the current one, unless the copy holds a newer generation. Where it
   * is another store in the same place, the set goes behind all that it holds.
   *
   * @returns whether the pair is, or was, a head of its set; if not, it is a second pair of one
   * generation, or of one before the head, kept beside the first
   * @throws when the store does not know the set, and is not its home or belongs to another service
   */
  save(saved: NewPair): Promise<boolean>;
  /** Whether it has held this pair, under whatever set, so that saving it would bring nothing. */
  holds(saved: NewPair): Promise<boolean>;
  /** Newest first. */
  history(limit: number): Promise<HistoryEntry[]>;
  /**
   * Gives the set away: from the same transaction on, it is never marked here again. Asked once more for
   * the same place, it gives the same again, so that a move that was cut off can be finished.
   *
   * @throws Error with a message for the operator when there is nothing that can be moved: no set, a lost
   * one, one that was moved elsewhere, an exchange that is under way or in doubt
   */
  moveOut(move: { to: string; at: number; replica: string }): Promise<MovedSet>;
  /** Takes back a set that could not be moved. */
  moveBack(to: string): Promise<void>;
  /**
   * Takes over a set. Once more the same changes nothing.
   *
   * @throws Error with a message for the operator when it would replace a set that is not lost or moved
   */
  moveIn(moved: MovedSet & { at: number; replica: string }): Promise<void>;
  close(): Promise<void>;
}

/** The store was taken away, or what lies in its place now is none. */
export class StoreGoneError extends Error {
  override readonly name = 'StoreGoneError';
}

export interface StoredTokens {
  /** Names the store: copies of it have the same name, one that is made anew has another. */
  readonly storeId: string;
  /** Names this import and what was rotated from it; never used again. */
  readonly set: string;
  /** The service this set belongs to. */
  readonly baseUrl: string;
  /** Counts imports and rotations, from 1, over all sets. */
  readonly generation: number;
  readonly pair: TokenPair;
  /** Of the exchange that gave the pair, or `import`, or `moved`. */
  readonly attempt: string;
  /** To recognize the refresh token by: the same in every store and every process. */
  readonly fingerprint: string;
  /** Wall time of the save, ms. */
  readonly savedAt: number;
  readonly lost: boolean;
  /** The store that the set was moved to: this one may not rotate it any more. */
  readonly movedTo: string | null;
  /** Straight from a token link, never rotated: how old it was by then, nobody knows. */
  readonly imported: boolean;
  readonly mark: StoredMark | null;
  /** Exchanges of this very refresh token that were begun and never clearly answered. */
  readonly unanswered: number;
  /** Further pairs of this generation, beside the one in use. */
  readonly surplus: number;
}

export interface StoredMark {
  readonly attempt: string;
  /** Wall time of the mark, ms. */
  readonly at: number;
  /** Its exchange may be under way. Otherwise it ended in doubt, or with its process. */
  readonly live: boolean;
}

export interface NewMark {
  readonly set: string;
  readonly generation: number;
  readonly attempt: string;
  /** Wall time, ms. */
  readonly at: number;
  /**
   * The attempt of the earlier mark that the caller has seen, and made sure of; null when it saw none. With
   * another mark in the store it is refused: its process may have died a moment ago, and have left the pair
   * in its rescue file.
   */
  readonly over?: string | null;
  /** How long its exchange may take, ms: for stores that cannot see whether the marking process lives. */
  readonly lifeMs: number;
  readonly replica: string;
}

export interface Mark {
  /**
   * A mark before this one timed out, and nobody knows whether its process still lives: it may yet save a
   * pair of this generation.
   */
  readonly overExpired: boolean;
}

export interface NewSet {
  readonly baseUrl: string;
  readonly pair: TokenPair;
  /** Wall time, ms. */
  readonly at: number;
  readonly replica: string;
  /** The head that it is to follow; null for an empty store. */
  readonly after: { readonly set: string; readonly generation: number } | null;
}

export type ImportOutcome =
  | { readonly kind: 'imported'; readonly stored: StoredTokens }
  /** Somebody else imported or rotated meanwhile. */
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
  /** Wall time, ms. */
  readonly at: number;
  readonly latencyMs: number;
  /** The store that it belongs into, by its description and its `storeId`, and the service of its set. */
  readonly home?: {
    readonly store: string;
    readonly storeId?: string | undefined;
    readonly baseUrl: string;
  };
}

/** What an answer with status 200 held. */
export type PairOutcome =
  'rotated' | 'same-refresh-token' | 'without-refresh-token' | 'without-access-token';

export interface Ending {
  readonly outcome: 'unsent' | 'rate-limited' | 'refused' | 'uncertain' | 'invalid-grant';
  readonly latencyMs: number;
}

export interface HistoryEntry {
  /** Wall time, ms: of an exchange, when it was marked. */
  readonly at: number;
  readonly generation: number;
  readonly attempt: string;
  /** `begun` is an exchange under way, or one whose process ended before it was settled. */
  readonly outcome:
    PairOutcome | Ending['outcome'] | 'begun' | 'imported' | 'moved-in' | 'moved-out';
  readonly latencyMs: number | null;
  readonly replica: string;
}

export interface MovedSet {
  readonly baseUrl: string;
  readonly generation: number;
  readonly pair: TokenPair;
  readonly savedAt: number;
  readonly imported: boolean;
  /** Of all refresh tokens that the source ever held. */
  readonly fingerprints: readonly FingerprintRing[];
}

/** Fingerprints, and the key that they were made with. */
export interface FingerprintRing {
  readonly key: Uint8Array;
  readonly known: readonly { readonly fingerprint: string; readonly generation: number }[];
}
