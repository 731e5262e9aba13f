import type { TokenPair } from '../token-set.ts';

/** The state of one token set. */
export interface SetRow {
  readonly id: number;
  readonly name: string;
  readonly base_url: string;
  readonly head: number;
  readonly lost: number;
  readonly moved_to: string | null;
  readonly withdrawn: number;
  readonly claim_attempt: string | null;
  readonly claim_at: number | null;
}

/** A token pair as it is read of its row. */
export interface KeptPair {
  readonly generation: number;
  readonly attempt: string;
  readonly pair: TokenPair;
  readonly savedAt: number;
  readonly imported: boolean;
  /** The set was, or is, at this very pair; not so for a second pair of its generation. */
  readonly wasHead: boolean;
}
