const TWO_32 = 2 ** 32;

/**
 * Hashes an identity to a 53-bit number, never 0: a walk and its index keep these instead of the strings. Two identities
 * have the same hash with a chance of about 1 in 10^16, any two of a million with 1 in 18,000: its parts are two
 * independent multiplicative hashes of UTF-16 units, each avalanched at the end.
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
  const hashes = ids.map((id) => (id === null ? NaN : identityHash(id)));
  const known = hashes.filter((hash) => !Number.isNaN(hash));
  const { size } = new Set(known);
  return { hashes, hasRepeats: size < known.length, areUnique: size === hashes.length };
}
