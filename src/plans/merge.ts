/** Several sources, read as one. */
export interface Merge<T> {
  add(source: AsyncGenerator<T, void, undefined>): void;
  /** What comes first; undefined when all have ended. A source goes on when its last one was taken. */
  next(): Promise<T | undefined>;
  end(): Promise<void>;
}

export function createMerge<T>(): Merge<T> {
  type Source = AsyncGenerator<T, void, undefined>;
  type Came = { source: Source; result: IteratorResult<T, void> };
  const sources = new Set<Source>();
  const asked = new Map<Source, Promise<Came>>();

  return {
    add: (source) => void sources.add(source),
    next: async () => {
      while (sources.size > 0) {
        for (const source of sources) if (!asked.has(source)) asked.set(source, ask(source));
        const { source, result } = await Promise.race(asked.values());
        asked.delete(source);
        if (!result.done) return result.value;
        sources.delete(source);
      }
      return undefined;
    },
    end: async () => {
      await Promise.all([...sources].map((source) => source.return()));
    },
  };

  function ask(source: Source): Promise<Came> {
    const came = source.next().then((result) => ({ source, result }));
    // It may fail when nobody reads on.
    came.catch(() => {});
    return came;
  }
}
