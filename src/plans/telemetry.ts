import type { Cause } from '../cause.ts';
import { codeOf } from '../errors.ts';
import type { WalkedPages } from '../paging/walk.ts';

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

/** `drain`: a caller reads the list. `search`: the positions of records in it are looked up. A label of metrics. */
export type WalkKind = 'drain' | 'search';

export interface ReportedWalk {
  /** The cause to send the walk's requests with. */
  readonly cause: Cause | undefined;
  /**
   * @param outcome `whole`: the walk reached the end of the list; `stopped`: its readers wanted no more; otherwise the
   *   code of the error that ended it
   */
  ended(outcome: 'whole' | 'stopped' | { readonly code: unknown }): void;
}

/** Reports a walk, from when its first page is requested. */
export async function* reportedWalk<R>(
  { telemetry, kind, list, cause }: WalkToReport,
  begin: (cause: Cause | undefined) => WalkedPages<R>,
): WalkedPages<R> {
  const reported = telemetry.walkBegun(kind, list, cause);
  let outcome: Parameters<typeof reported.ended>[0] = 'stopped';
  try {
    for await (const page of begin(reported.cause)) {
      outcome = page.hasNextPage ? 'stopped' : 'whole';
      yield page;
    }
    outcome = 'whole';
  } catch (error) {
    const isAbort = error instanceof Error && error.name === 'AbortError';
    outcome = isAbort ? 'stopped' : { code: codeOf(error) };
    throw error;
  } finally {
    reported.ended(outcome);
  }
}

interface WalkToReport {
  readonly telemetry: ReadingTelemetry;
  readonly kind: WalkKind;
  /** The upstream's field. */
  readonly list: string;
  readonly cause: Cause | undefined;
}
