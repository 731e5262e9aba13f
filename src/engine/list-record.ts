import type { AnswerError } from './answer.ts';

/** A record of a page, as an operation selects it. Walks share it, since nobody can change it. */
export interface ListRecord {
  /** The record as JSON, as each place of the operation selects it: `nodes`, and each `edges { node }`. */
  readonly texts: readonly string[];
  /** Their paths begin with the index in `texts`, and are empty for an error of the whole list. */
  readonly errors: readonly AnswerError[];
}
