/**
 * Hashes an identity to a 53-bit number (cyrb53): a walk and its index keep these instead of the strings. Two identities
 * have the same hash with a chance of about 1 in 10^16, any two of a million with 1 in 18,000.
 */
export function identityHash(identity: string): number {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let index = 0; index < identity.length; index += 1) {
    const unit = identity.charCodeAt(index);
    a = Math.imul(a ^ unit, 0x9e3779b1);
    b = Math.imul(b ^ unit, 0x5f356495);
  }
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35);
  b = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35);
  return (b & 0x1fffff) * 2 ** 32 + (a >>> 0);
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
