/**
 * A set of identities that keeps a 53-bit hash of each: a million take 16 MB, while the strings would take hundreds.
 * The chance that any two of a million collide is about 1 in 18,000.
 */
export class IdentitySet {
  /** Open addressing, linear probing. A free slot is 0, which is never a hash. */
  #slots = new Float64Array(INITIAL_SLOTS);
  #size = 0;

  /** Returns false if the hash was already in the set. */
  add(hash: number): boolean {
    if (2 * this.#size >= this.#slots.length) this.#grow();
    const slot = slotOf(this.#slots, hash);
    if (this.#slots[slot] === hash) return false;
    this.#slots[slot] = hash;
    this.#size += 1;
    return true;
  }

  has(hash: number): boolean {
    return this.#slots[slotOf(this.#slots, hash)] === hash;
  }

  #grow(): void {
    const slots = new Float64Array(2 * this.#slots.length);
    for (const hash of this.#slots) if (hash !== 0) slots[slotOf(slots, hash)] = hash;
    this.#slots = slots;
  }
}

/** Returns the slot that holds the hash, or the free slot where it belongs. */
function slotOf(slots: Float64Array, hash: number): number {
  const mask = slots.length - 1;
  // The lower 32 bits of the hash.
  let slot = hash & mask;
  for (;;) {
    const stored = slots[slot]!;
    if (stored === hash || stored === 0) return slot;
    slot = (slot + 1) & mask;
  }
}

const INITIAL_SLOTS = 128;
const TWO_32 = 2 ** 32;

/**
 * Hashes an identity to a 53-bit number, never 0. Two identities have the same hash with a chance of about 1 in 10^16:
 * its parts are two independent multiplicative hashes of UTF-16 units, each avalanched at the end.
 */
export function identityHash(identity: string): number {
  let a = 0x811c9dc5;
  let b = 0x1b873593;
  for (let index = 0; index < identity.length; index += 1) {
    const unit = identity.charCodeAt(index);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(((b << 13) | (b >>> 19)) ^ unit, 0xcc9e2d51);
  }
  const low = avalanche(a);
  const high = avalanche(b ^ identity.length ^ low);
  return (high & 0x1fffff) * TWO_32 + low || 1;
}

function avalanche(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** The hashed ids of the records of one page. */
export interface Identities {
  /** One hash for each record; NaN for a record without an id. */
  readonly hashes: readonly number[];
  /** Whether an id occurs twice, which proves that ids are not unique in this list. */
  readonly hasRepeats: boolean;
  /** Whether every record has an id of its own, so that the page can prove a join. */
  readonly areUnique: boolean;
}

export function hashIds(ids: readonly (string | null)[]): Identities {
  const seen = new IdentitySet();
  let hasRepeats = false;
  let hasNulls = false;
  const hashes = ids.map((id) => {
    if (id === null) {
      hasNulls = true;
      return NaN;
    }
    const hash = identityHash(id);
    hasRepeats = !seen.add(hash) || hasRepeats;
    return hash;
  });
  return { hashes, hasRepeats, areUnique: !hasRepeats && !hasNulls };
}
