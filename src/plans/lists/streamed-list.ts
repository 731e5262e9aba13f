import type { Path } from '../../answers/errors.ts';
import type { StreamArguments } from '../../schema/incremental-directives.ts';
import type { Output } from '../output.ts';
import { errorsOfList, NullList } from '../pages/fetch-page.ts';

/** A list of the answer that is given part by part. */
export interface StreamedList {
  readonly path: Path;
  readonly label: string | undefined;
  /** How many of its elements were given. */
  readonly sent: number;
  /** The next part; undefined at the end. `isNull`: nothing more comes, since something is wrong. */
  next(): Promise<(Output & { readonly count: number; readonly isNull: boolean }) | undefined>;
}

export type PartSource<T> = AsyncGenerator<readonly T[], void, undefined>;

interface ListParts<T> {
  /** Reads the list, part by part. */
  readonly parts: () => PartSource<T>;
  /** @returns false when an element is null that may not be */
  readonly write: (elements: readonly T[], offset: number, output: Output) => boolean;
}

export function createStreamedList<T>(
  path: Path,
  { initialCount, label }: StreamArguments,
  { parts, write }: ListParts<T>,
) {
  let source: PartSource<T> | undefined;
  /** Of the part whose first elements were the last ones of the beginning. */
  let rest: readonly T[] = [];
  let failure: { readonly error: unknown } | undefined;
  let sent = 0;

  /** The first elements, as many as are wanted at first. */
  const take = async (): Promise<readonly T[]> => {
    source = parts();
    const first: T[] = [];
    try {
      while (first.length < initialCount) {
        const { done, value } = await source.next();
        if (done) break;
        first.push(...value);
      }
    } catch (error) {
      if (first.length === 0) throw error;
      // What was read is given first.
      failure = { error };
    }
    rest = first.splice(initialCount);
    sent = first.length;
    return first;
  };

  return {
    path,
    label,
    get sent() {
      return sent;
    },
    take,
    begin: async () => {
      const output: Output = { parts: [], errors: [], deferred: [] };
      const elements = await take();
      const isThere = write(elements, 0, output);
      return { output, isNull: !isThere };
    },
    next: async () => {
      let elements = rest;
      rest = [];
      const output: Output = { parts: [], errors: [], deferred: [] };
      try {
        if (elements.length === 0) {
          if (failure) throw failure.error;
          const { done, value } = await source!.next();
          if (done) return undefined;
          elements = value;
        }
      } catch (error) {
        // The list is null; but it was given already that it begins.
        if (error instanceof NullList) return undefined;
        output.errors.push(...errorsOfList(error, path));
        return { ...output, count: 0, isNull: true };
      }
      if (!write(elements, sent, output)) return { ...output, count: 0, isNull: true };
      sent += elements.length;
      return { ...output, count: elements.length, isNull: false };
    },
  };
}
