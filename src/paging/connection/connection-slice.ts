import type { Position } from '../place/cursor.ts';

/** A stretch of a list as its pages come, and at its end what stands around it. */
export type Slice<R> = AsyncGenerator<SlicePart<R>, SliceEnd, undefined>;

export interface SlicePart<R> {
  /** Records, each with the position that its cursor is made from. */
  readonly edges: readonly Edge<R>[];
  /** What came with them and belongs to no record. */
  readonly beside: readonly unknown[];
}

export interface Edge<R> {
  readonly record: R;
  readonly position: Position;
}

export interface SliceEnd {
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}
