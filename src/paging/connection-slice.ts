import type { Position } from './cursor.ts';

/** A stretch of a list, each record with the position that its cursor is made from. */
export interface ConnectionSlice<R> {
  readonly edges: readonly { readonly record: R; readonly position: Position }[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  /** What came with its pages and belongs to no record. */
  readonly beside: readonly unknown[];
}
