import type { Cause } from '../cause.ts';

/** Who is told of what is read, and for whom it is read. */
export interface ReadingWatch {
  pageRead(cause: Cause | undefined): void;
  /** @param list the upstream's field */
  walkBegun(kind: WalkKind, list: string, cause: Cause | undefined): WatchedWalk;
  /** Whether a walk had an index to read pages ahead by. */
  walkPlanned(hasIndex: boolean): void;
  /** Of records looked for by their ids: how many an index had a place for, and how many not. */
  placesLookedUp(known: number, unknown: number): void;
}

/** For somebody who wants the list, or for the places of records in it. */
export type WalkKind = 'drain' | 'search';

export interface WatchedWalk {
  /** For whom its requests are sent. */
  readonly cause: Cause | undefined;
  /**
   * @param outcome `whole`: it came to the end of the list; `stopped`: nobody wanted more; else the code of the
   *   error that ended it
   */
  ended(outcome: 'whole' | 'stopped' | { readonly code: unknown }): void;
}

export const unwatched: ReadingWatch = {
  pageRead: () => {},
  walkBegun: (_kind, _list, cause) => ({ cause, ended: () => {} }),
  walkPlanned: () => {},
  placesLookedUp: () => {},
};
