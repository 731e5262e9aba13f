/**
 * A set of identities that keeps a 53-bit hash of each: a million cost 16 MB, where the strings would cost hundreds.
 * The chance that any two of a million collide is about 1 in 18,000.
 */
export class IdentitySet {
  #low = new Uint32Array(INITIAL_SLOTS);
  #high = new Uint32Array(INITIAL_SLOTS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Returns false when the hash was there already. */
  add(hash: number): boolean {
    if (2 * this.#size >= this.#low.length) this.#grow();
    const low = hash >>> 0;
    const high = (hash - low) / TWO_32;
    const slot = this.#slotOf(low, high);
    if (this.#holds(slot)) return false;
    this.#low[slot] = low;
    this.#high[slot] = high;
    this.#size += 1;
    return true;
  }

  has(hash: number): boolean {
    const low = hash >>> 0;
    return this.#holds(this.#slotOf(low, (hash - low) / TWO_32));
  }

  /** The slot that holds the hash, or the free one where it belongs. Open addressing, linear probing. */
  #slotOf(low: number, high: number): number {
    const [lows, highs] = [this.#low, this.#high];
    const mask = lows.length - 1;
    let slot = low & mask;
    for (;;) {
      const [itsLow, itsHigh] = [lows[slot]!, highs[slot]!];
      if ((itsLow === low && itsHigh === high) || (itsLow === 0 && itsHigh === 0)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #holds(slot: number): boolean {
    // A stored hash is never 0: see finish().
    return this.#low[slot] !== 0 || this.#high[slot] !== 0;
  }

  #grow(): void {
    const [oldLow, oldHigh] = [this.#low, this.#high];
    this.#low = new Uint32Array(2 * oldLow.length);
    this.#high = new Uint32Array(2 * oldLow.length);
    for (let slot = 0; slot < oldLow.length; slot += 1) {
      const [low, high] = [oldLow[slot]!, oldHigh[slot]!];
      if (low === 0 && high === 0) continue;
      const target = this.#slotOf(low, high);
      this.#low[target] = low;
      this.#high[target] = high;
    }
  }
}

const INITIAL_SLOTS = 128;
const TWO_32 = 2 ** 32;

/** A hash of 53 bits, as a number. Two identities have the same one about once in 10^16. */
export function identityHash(identity: string): number {
  const state = begin();
  mixText(state, identity);
  return finish(state, identity.length);
}

/**
 * Hashes ids of one type as `identityHash` hashes `Type:id`, from their bytes and without a string for each.
 *
 * @returns a function that returns undefined for bytes that are not plain ASCII, or hold an escape
 */
export function identityHasher(
  type: string,
): (bytes: Uint8Array, start: number, end: number) => number | undefined {
  const prefix = begin();
  mixText(prefix, `${type}:`);
  const length = type.length + 1;
  const state = begin();
  return (bytes, start, end) => {
    let { a, b } = prefix;
    for (let at = start; at < end; at += 1) {
      const unit = bytes[at]!;
      if (unit > 126 || unit === 92) return undefined;
      a = Math.imul(a ^ unit, 0x01000193);
      b = Math.imul(((b << 13) | (b >>> 19)) ^ unit, 0xcc9e2d51);
    }
    state.a = a;
    state.b = b;
    return finish(state, length + end - start);
  };
}

/** Two independent multiplicative hashes of UTF-16 units, each avalanched at the end. */
interface State {
  a: number;
  b: number;
}

function begin(): State {
  return { a: 0x811c9dc5, b: 0x1b873593 };
}

function mixText(state: State, text: string): void {
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    state.a = Math.imul(state.a ^ unit, 0x01000193);
    state.b = Math.imul(((state.b << 13) | (state.b >>> 19)) ^ unit, 0xcc9e2d51);
  }
}

function finish({ a, b }: State, length: number): number {
  const low = avalanche(a);
  const high = avalanche(b ^ length ^ low);
  return (high & 0x1fffff) * TWO_32 + low || 1;
}

function avalanche(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
