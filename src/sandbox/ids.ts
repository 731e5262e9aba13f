/**
 * The id of the person with this number: it looks like a random UUID and is the same every time.
 * The first 32 bits are a permutation of the number, so that no two are alike.
 */
export function idOf(number: number): string {
  const [a, b, c, d] = [word(number, 1), word(number, 2), word(number, 3), word(number, 4)];
  return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-a${c.slice(5)}-${c.slice(0, 4)}${d}`;
}

function word(number: number, round: number): string {
  return scramble(number + round * 0x3c6e_f35f)
    .toString(16)
    .padStart(8, '0');
}

/** Each step can be undone, so that different numbers stay different. */
function scramble(number: number): number {
  let bits = number | 0;
  bits = Math.imul(bits ^ (bits >>> 15), 0x2f8d_4c35);
  bits = Math.imul(bits ^ (bits >>> 13), 0x61b9_e2a7);
  return (bits ^ (bits >>> 16)) >>> 0;
}
