import { codeOf } from '../errors.ts';
import type { WalkedPage } from '../paging/walk.ts';

/** Who is told of what is read. `cause` is what the context named: for whom it is read. */
export interface ReadingWatch {
  pageRead(cause: unknown): void;
  /** @param list the upstream's field */
  walkBegun(kind: WalkKind, list: string, cause: unknown): WatchedWalk;
  /** Whether a walk had an index to read pages ahead by. */
  walkPlanned(hasIndex: boolean): void;
  /** Of records looked for by their ids: how many an index had a place for, and how many not. */
  placesLookedUp(known: number, unknown: number): void;
}

/** For somebody who wants the list, or for the places of records in it. */
export type WalkKind = 'drain' | 'search';

export interface WatchedWalk {
  /** For whom its requests are sent. */
  readonly cause: unknown;
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

type Pages<R> = AsyncGenerator<WalkedPage<R>, void, undefined>;

/** A walk that is watched from its first page on. */
export async function* watchedWalk<R>(
  { watch, kind, list, cause }: WalkToWatch,
  begin: (cause: unknown) => Pages<R>,
): Pages<R> {
  const watched = watch.walkBegun(kind, list, cause);
  let outcome: Parameters<typeof watched.ended>[0] = 'stopped';
  try {
    for await (const page of begin(watched.cause)) {
      outcome = page.hasNextPage ? 'stopped' : 'whole';
      yield page;
    }
    outcome = 'whole';
  } catch (error) {
    const isLeft = error instanceof Error && error.name === 'AbortError';
    outcome = isLeft ? 'stopped' : { code: codeOf(error) };
    throw error;
  } finally {
    watched.ended(outcome);
  }
}

interface WalkToWatch {
  readonly watch: ReadingWatch;
  readonly kind: WalkKind;
  /** The upstream's field. */
  readonly list: string;
  readonly cause: unknown;
}
