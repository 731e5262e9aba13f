import type { Path } from '../../answers/answer-errors.ts';
import type { StreamArguments } from '../../schema/incremental-directives.ts';
import type { Output } from '../output.ts';
import { errorsOfList, NullList } from '../pages/fetch-page.ts';

/** A list of the answer that is sent in parts. */
export interface StreamedList {
  readonly path: Path;
  readonly label: string | undefined;
  /** Returns the number of elements sent so far. */
  sent(): number;
  /** Returns the next part; undefined at the end. */
  next(): Promise<StreamedPart | undefined>;
}

interface StreamedPart extends Output {
  readonly count: number;
  /** An error ended the list. */
  readonly isNull: boolean;
  /** JSON. */
  readonly extensions?: string | undefined;
}

export type PartSource<T> = AsyncGenerator<readonly T[], void, undefined>;

interface ListParts<T> {
  /** Reads the list in parts. */
  readonly parts: () => PartSource<T>;
  /** @returns false when an element is null that must not be */
  readonly write: (elements: readonly T[], offset: number, output: Output) => boolean;
  /** Returns the extensions, as JSON, of a part that has all elements read so far. */
  readonly extensions?: () => string | undefined;
}

export function createStreamedList<T>(
  path: Path,
  { initialCount, label }: StreamArguments,
  { parts, write, extensions }: ListParts<T>,
) {
  let source: PartSource<T> | undefined;
  /** What `take` read beyond the first elements. */
  let rest: readonly T[] = [];
  let failure: { readonly error: unknown } | undefined;
  let sent = 0;

  /** Reads the first elements, `initialCount` of them. */
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
      // The elements that were read are sent first.
      failure = { error };
    }
    rest = first.splice(initialCount);
    sent = first.length;
    return first;
  };

  return {
    path,
    label,
    sent: () => sent,
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
        // The service returned null for the list, but its beginning was sent already.
        if (error instanceof NullList) return undefined;
        output.errors.push(...errorsOfList(error, path));
        return { ...output, count: 0, isNull: true };
      }
      if (!write(elements, sent, output)) return { ...output, count: 0, isNull: true };
      sent += elements.length;
      const count = elements.length;
      return {
        ...output,
        count,
        isNull: false,
        extensions: count > 0 ? extensions?.() : undefined,
      };
    },
  };
}
