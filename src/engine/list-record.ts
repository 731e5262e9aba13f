import type { AnswerError, Path } from './answer.ts';

/** A record of a page, as an operation selects it. Walks share it, since nobody can change it. */
export interface ListRecord {
  /** The record as JSON, as each place of the operation selects it: `nodes`, and each `edges { node }`. */
  readonly texts: readonly string[];
  readonly errors: readonly RecordError[];
}

export interface RecordError {
  readonly error: AnswerError;
  /** The index in `texts`; undefined for an error of the whole list. */
  readonly place: number | undefined;
  /** From the record. */
  readonly path: Path;
}
