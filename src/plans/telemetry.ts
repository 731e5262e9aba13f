import type { Cause } from '../cause.ts';

/** Receives what happens while lists are read. `cause` identifies the caller's request. */
export interface ReadingTelemetry {
  pageRead(cause: Cause | undefined): void;
  /**
   * Called for each error that the service returned as data, in place of a record or a page.
   *
   * @param type the upstream's name @param reason the value of its first enum that has one; empty without
   */
  resultFailed(type: string, reason: string): void;
  /** @param list the upstream's field */
  walkBegun(kind: WalkKind, list: string, cause: Cause | undefined): ReportedWalk;
  /** @param hasIndex whether a page index lets the walk read pages in parallel */
  walkPlanned(hasIndex: boolean): void;
  /** The service refused a request for as many records as this, because of its size. */
  tooBig(list: string): void;
  /** Pages of the list have another size from now on, for one selection of its records. */
  sizeChanged(list: string, size: number): void;
  /** A whole walk found fewer records than the service counted, at its beginning and at its end. */
  walkFellShort(list: string, found: number, counted: number): void;
  /** Of the records that were looked up by id: how many had a position in the page index, and how many had none. */
  positionsLookedUp(known: number, unknown: number): void;
}

/**
 * `drain`: a caller reads the list. `search`: the positions of records in it are looked up. `count`: it is counted again
 * in the background. A label of metrics.
 */
type WalkKind = 'drain' | 'search' | 'count';

interface ReportedWalk {
  /** The cause to send the walk's requests with. */
  readonly cause: Cause | undefined;
  /**
   * @param outcome `whole`: the walk reached the end of the list; `stopped`: its readers wanted no more; otherwise the
   *   code of the error that ended it
   */
  ended(outcome: 'whole' | 'stopped' | { readonly code: unknown }): void;
}
