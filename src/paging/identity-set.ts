/**
 * A set of identities that keeps a 64-bit hash of each: a million of them cost 16 MB, not the hundreds
 * that the strings would. At a million, the chance that any two of them collide is about 1 in 30 million.
 */
export class IdentitySet {
  #low = new Uint32Array(INITIAL_SLOTS);
  #high = new Uint32Array(INITIAL_SLOTS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds it; false when it was there already. */
  add(identity: string): boolean {
    if (2 * this.#size >= this.#low.length) this.#grow();
    const [low, high] = hash(identity);
    const slot = this.#slotOf(low, high);
    if (this.#holds(slot)) return false;
    this.#low[slot] = low;
    this.#high[slot] = high;
    this.#size += 1;
    return true;
  }

  has(identity: string): boolean {
    return this.#holds(this.#slotOf(...hash(identity)));
  }

  /** The slot that holds the hash, or the free one where it belongs. Open addressing, linear probing. */
  #slotOf(low: number, high: number): number {
    const mask = this.#low.length - 1;
    let slot = low & mask;
    while (this.#holds(slot) && !(this.#low[slot] === low && this.#high[slot] === high)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #holds(slot: number): boolean {
    // A stored hash is never all zeros: see hash().
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

const INITIAL_SLOTS = 256;

/** 53 bits of the hash, as a number: small enough to keep many, and wrong about one time in 10^16. */
export function identityHash(identity: string): number {
  const [low, high] = hash(identity);
  return (high & 0x1fffff) * 2 ** 32 + low;
}

/** Two independent multiplicative hashes of the UTF-16 units, each avalanched at the end. */
function hash(text: string): readonly [low: number, high: number] {
  let a = 0x811c9dc5;
  let b = 0x1b873593 ^ text.length;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(((b << 13) | (b >>> 19)) ^ unit, 0xcc9e2d51);
  }
  const low = avalanche(a);
  const high = avalanche(b ^ low);
  return low === 0 && high === 0 ? [1, 0] : [low, high];
}

function avalanche(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
