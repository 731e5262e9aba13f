/**
 * Sort keys: strings in the order of `<`, so that there is always another one between two of them. Each is a number in
 * base 36, with 8 digits before the point, which is not written, and any number of digits after it. Each key is issued
 * once, so that the key of a removed record never becomes that of another one.
 */
export class SortKeys {
  #lowest = origin;
  #highest: number;
  #issued = 0;

  /** Reserves the keys `first(0)` to `first(count - 1)`. */
  constructor(count: number) {
    this.#highest = origin + count;
  }

  first(index: number): string {
    return whole(origin + index);
  }

  /** Keys smaller than all others, in order. */
  front(count: number): string[] {
    this.#lowest -= count;
    return Array.from({ length: count }, (_, index) => whole(this.#lowest + index));
  }

  /** Keys larger than all others, in order. */
  last(count: number): string[] {
    this.#highest += count;
    return Array.from({ length: count }, (_, index) => whole(this.#highest - count + index));
  }

  /** Keys between two others, in order. Halving the gap each time keeps them short. */
  between(low: string, high: string, count: number): string[] {
    if (count === 0) return [];
    const left = (count - 1) >>> 1;
    const middle = midpoint(low, high) + this.#mark();
    return [
      ...this.between(low, middle, left),
      middle,
      ...this.between(middle, high, count - 1 - left),
    ];
  }

  /** Makes a key unique. It must not end in 0, which has no meaning after the point. */
  #mark(): string {
    this.#issued += 1;
    return `${this.#issued.toString(base)}i`;
  }
}

const base = 36;
const wholeDigits = 8;
const origin = base ** wholeDigits / 2;

function whole(number: number): string {
  return number.toString(base).padStart(wholeDigits, '0');
}

/** Lies between the two and already differs from the larger one, so more digits keep it between them. */
function midpoint(low: string, high: string): string {
  let position = 0;
  while (digitAt(low, position) === digitAt(high, position)) position += 1;
  const prefix = high.slice(0, position);
  const lower = digitAt(low, position);
  const middle = (lower + digitAt(high, position)) >>> 1;
  return middle > lower
    ? prefix + middle.toString(base)
    : prefix + lower.toString(base) + above(low.slice(position + 1));
}

/** Digits after the point that are larger than these. */
function above(digits: string): string {
  let position = 0;
  while (digitAt(digits, position) === base - 1) position += 1;
  const middle = (digitAt(digits, position) + base) >>> 1;
  return digits.slice(0, position) + middle.toString(base);
}

function digitAt(key: string, position: number): number {
  return position < key.length ? Number.parseInt(key.charAt(position), base) : 0;
}
