/**
 * Entries that wait for their turn. Owners take turns: one who has a thousand entries waiting delays the others no
 * more than one who has a single entry.
 */
export interface FairQueue<T> extends Iterable<T> {
  readonly size: number;
  /** Whether at least `max` entries wait and this owner has a fair share of them or more. */
  isFull(owner: unknown, max: number): boolean;
  add(owner: unknown, entry: T): void;
  /** Removes an entry that leaves before its turn; its owner keeps its place. */
  delete(owner: unknown, entry: T): void;
  /** Removes an entry whose turn has come; its owner's next entry waits behind those of all other owners. */
  take(owner: unknown, entry: T): void;
}

export function createFairQueue<T>(): FairQueue<T> {
  // A map and a set keep the order in which entries were added, so the owner whose turn is next comes first.
  const entries = new Map<unknown, Set<T>>();
  let size = 0;

  return {
    get size() {
      return size;
    },
    isFull: (owner, max) => {
      const own = entries.get(owner);
      const owners = entries.size + (own ? 0 : 1);
      return size >= max && (own?.size ?? 0) >= max / owners;
    },
    add: (owner, entry) => {
      const own = entries.get(owner) ?? new Set();
      if (own.has(entry)) return;
      entries.set(owner, own.add(entry));
      size += 1;
    },
    delete: (owner, entry) => void remove(owner, entry),
    take: (owner, entry) => {
      const own = remove(owner, entry);
      entries.delete(owner);
      if (own.size > 0) entries.set(owner, own);
    },
    *[Symbol.iterator]() {
      let owners = Array.from(entries.values(), (own) => own.values());
      while (owners.length > 0) {
        const round = owners.map((own) => ({ own, next: own.next() }));
        owners = [];
        for (const { own, next } of round) {
          if (next.done) continue;
          owners.push(own);
          yield next.value;
        }
      }
    },
  };

  function remove(owner: unknown, entry: T): Set<T> {
    const own = entries.get(owner) ?? new Set<T>();
    if (own.delete(entry)) size -= 1;
    if (own.size === 0) entries.delete(owner);
    return own;
  }
}
