import type { Json } from '../json.ts';
import type { Pausable } from '../pausable.ts';
import type { AnswerError, Path, UpstreamError } from './answer-errors.ts';
import type { PlaceholderShape } from './shape.ts';

/** A piece of an answer: text, bytes that other answers may share, or a field that is still to be filled in. */
export type Part = string | Buffer | Placeholder;

/** A value that was read: its text, with placeholders where something is filled in later. */
export interface Reading {
  /** Undefined if there is a null where none is allowed, so that the value around it has to be null. */
  readonly parts: readonly Part[] | undefined;
  /** Their paths begin at the value. */
  readonly errors: readonly AnswerError[];
  /** The fields that `@defer` puts off. */
  readonly deferred: readonly DeferredReading[];
}

/** Fields of an object that are sent in a later part of the answer. */
export interface DeferredReading {
  readonly label: string | undefined;
  /** From the value that was read to this object. */
  readonly path: Path;
  /** Reads the object with these fields only. The paths of the reading begin at the object. */
  readonly read: () => Pausable<Reading>;
}

/** Stands for a derived field of a nested list until it is filled in. */
export interface Placeholder {
  readonly shape: PlaceholderShape;
  /** From the value that was read to the field. */
  readonly path: Path;
  /** The parent's id. */
  readonly id: Json | undefined;
  /** The first page of the list, if it was inlined, and the errors in it. */
  readonly page: Json | undefined;
  readonly errors: readonly UpstreamError[];
}
