import type { TokenPair } from './token-set.ts';

/**
 * Where the token set lives. Every method is one durable transaction: when its promise resolves, a
 * crash or a power cut does not undo it; when it rejects, nothing was changed.
 *
 * The mark says "somebody is about to send this generation's refresh token, or has". It is the lock of a
 * rotation: of all processes on one store, only the one that wrote it may send.
 */
export interface TokenStore {
  /** For people: which store this is, without credentials. */
  readonly description: string;
  /** The newest pair of the current set, or null when nothing was ever imported. */
  read(): Promise<StoredTokens | null>;
  /**
   * Begins a new set, one generation after the last one. The sets before it stay in the store.
   *
   * @param imported.after the generation that it is to follow, 0 for an empty store
   * @returns null when the head is another one by now: somebody else imported or rotated
   */
  import(imported: {
    baseUrl: string;
    pair: TokenPair;
    at: number;
    after: number;
  }): Promise<StoredTokens | null>;
  /** Marks `generation` as being exchanged. False when the head moved or another mark is live. */
  mark(mark: ExchangeMark & { generation: number; now: number }): Promise<boolean>;
  /** Takes the mark away after an outcome that surely did not spend the refresh token. */
  unmark(attempt: string): Promise<void>;
  /**
   * Keeps the pair that an exchange of `generation` gave. Always inserted, also when the mark is no
   * longer ours: the service gives one answer for one refresh token, so that is fence enough. The head
   * moves only where it is `generation`. Saving the same once more changes nothing.
   */
  save(saved: { generation: number; attempt: string; pair: TokenPair; at: number }): Promise<void>;
  /** Remembers that the service refused `generation`'s refresh token for good. Deletes nothing. */
  lose(generation: number): Promise<void>;
  close(): Promise<void>;
}

export interface StoredTokens {
  /** The service this set belongs to. */
  readonly baseUrl: string;
  /** Counts imports and rotations, from 1, over all sets: one number says which of two pairs is newer. */
  readonly generation: number;
  readonly pair: TokenPair;
  /** Wall time of the save, ms. */
  readonly savedAt: number;
  readonly lost: boolean;
  /** Straight from a token link, never rotated: how old it was by then, nobody knows. */
  readonly imported: boolean;
  readonly mark: ExchangeMark | null;
}

export interface ExchangeMark {
  readonly attempt: string;
  /** Wall time, ms, from which others may take the mark over. */
  readonly until: number;
}
