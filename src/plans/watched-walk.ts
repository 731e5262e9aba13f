import type { Cause } from '../cause.ts';
import { codeOf } from '../errors.ts';
import type { WalkedPage } from '../paging/walk.ts';
import type { ReadingWatch, WalkKind } from './reading-watch.ts';

type Pages<R> = AsyncGenerator<WalkedPage<R>, void, undefined>;

/** A walk that is watched from its first page on. */
export async function* watchedWalk<R>(
  { watch, kind, list, cause }: WalkToWatch,
  begin: (cause: Cause | undefined) => Pages<R>,
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
  readonly cause: Cause | undefined;
}
