/** Some records of a list, and what came with them and belongs to none. */
export interface StreamPart<R> {
  readonly records: readonly R[];
  readonly beside: readonly unknown[];
}

type Parts<R> = AsyncGenerator<StreamPart<R>, void, undefined>;

/** A field whose records are given part by part: its resolver is called once for each part. */
export interface ListStream<R> extends StreamTurns {
  /**
   * For the resolver: the records that it is to give now.
   *
   * @param begin reads the list, when this is the first part
   */
  part(begin: () => Parts<R>): Promise<StreamPart<R>>;
}

export interface StreamTurns {
  /**
   * Goes on to the next part; false when there is none.
   *
   * @throws what ended the reading
   */
  turn(): Promise<boolean>;
  /** Ends the reading. */
  end(): Promise<void>;
}

/** @param initialCount how many records are the first part, when the list has so many */
export function createListStream<R>(initialCount: number): ListStream<R> {
  let parts: Parts<R> | undefined;
  let now: StreamPart<R> = NOTHING;
  /** Of the page whose first records were the last ones of the first part. */
  let rest: StreamPart<R> = NOTHING;
  let failure: { error: unknown } | undefined;

  return {
    part: async (begin) => {
      if (!parts) {
        parts = begin();
        now = await firstPart(parts);
      }
      return now;
    },
    turn: async () => {
      now = rest;
      rest = NOTHING;
      if (now.records.length > 0) return true;
      if (failure) throw failure.error;
      const { done = true, value } = (await parts?.next()) ?? {};
      if (done || !value) return false;
      now = value;
      return true;
    },
    end: async () => {
      await parts?.return();
    },
  };

  async function firstPart(reading: Parts<R>): Promise<StreamPart<R>> {
    const records: R[] = [];
    const beside: unknown[] = [];
    try {
      while (records.length < initialCount) {
        const { done, value } = await reading.next();
        if (done) break;
        records.push(...value.records);
        beside.push(...value.beside);
      }
    } catch (error) {
      if (records.length === 0) throw error;
      // What was read is given first.
      failure = { error };
    }
    rest = { ...NOTHING, records: records.splice(initialCount) };
    return { records, beside };
  }
}

const NOTHING: StreamPart<never> = { records: [], beside: [] };
