/** Those who wait, one of each caller in turn: who has a thousand waiting holds nobody else up. */
export interface WaitingLine<T> extends Iterable<T> {
  readonly size: number;
  /** Whether so many wait, and of this caller not less than a fair part of them. */
  isFull(caller: string, most: number): boolean;
  add(caller: string, one: T): void;
  /** Undone before its turn came. */
  delete(caller: string, one: T): void;
  /** It had its turn: now it is that of others. */
  served(caller: string, one: T): void;
}

export function createWaitingLine<T>(): WaitingLine<T> {
  // A map keeps the order in which callers came, and one who was served goes to its end.
  const callers = new Map<string, Set<T>>();
  let size = 0;

  return {
    get size() {
      return size;
    },
    isFull: (caller, most) => {
      const own = callers.get(caller);
      const sharers = callers.size + (own ? 0 : 1);
      return size >= most && (own?.size ?? 0) >= most / sharers;
    },
    add: (caller, one) => {
      const own = callers.get(caller) ?? new Set();
      callers.set(caller, own.add(one));
      size += 1;
    },
    delete: (caller, one) => void remove(caller, one),
    served: (caller, one) => {
      const own = remove(caller, one);
      callers.delete(caller);
      if (own.size > 0) callers.set(caller, own);
    },
    *[Symbol.iterator]() {
      let rounds = Array.from(callers.values(), (own) => own.values());
      while (rounds.length > 0) {
        const round = rounds.map((each) => ({ each, next: each.next() }));
        rounds = [];
        for (const { each, next } of round) {
          if (next.done) continue;
          rounds.push(each);
          yield next.value;
        }
      }
    },
  };

  function remove(caller: string, one: T): Set<T> {
    const own = callers.get(caller) ?? new Set<T>();
    if (own.delete(one)) size -= 1;
    if (own.size === 0) callers.delete(caller);
    return own;
  }
}
