/** The notes of a scan. One tape is used for all scans of a scanner, so its contents must be copied to be kept. */
export interface Tape {
  /** Start and end of each part that is cut out or replaced, in the order of the bytes. */
  readonly cuts: number[];
  /** What replaces each of them. */
  readonly inserts: string[];
  /** Start and end of each record of the marked lists. */
  readonly records: number[];
  /** Start and end of the id of each record, as it was written; 0 and 0 for a record without one. */
  readonly ids: number[];
  /** The type of each record; empty for one without an id. */
  readonly types: string[];
  /** The number of records of each marked list. */
  readonly counts: number[];
  /** Start and end of each noted field, by its index in `Marks.noted`. */
  readonly noted: number[];
}

export function createTape(): Tape {
  return { cuts: [], inserts: [], records: [], ids: [], types: [], counts: [], noted: [] };
}

export function resetTape({ cuts, inserts, records, ids, types, counts, noted }: Tape): void {
  cuts.length = 0;
  inserts.length = 0;
  records.length = 0;
  ids.length = 0;
  types.length = 0;
  counts.length = 0;
  noted.length = 0;
}

/** Copies a part of the bytes and applies the cuts. */
export function cut(
  bytes: Buffer,
  start: number,
  end: number,
  { cuts, inserts }: Pick<Tape, 'cuts' | 'inserts'>,
): Buffer {
  let first = 0;
  while (first < cuts.length && cuts[first]! < start) first += 2;
  // The quote behind the last digit of an id is an insert without a cut, at the very end.
  let last = first;
  while (last < cuts.length && (cuts[last]! < end || cuts[last + 1] === end)) last += 2;
  let length = end - start;
  for (let i = first; i < last; i += 2) {
    length += inserts[i / 2]!.length - (cuts[i + 1]! - cuts[i]!);
  }
  // Not from the shared pool: a part of it would keep the whole pool alive.
  const out = Buffer.allocUnsafeSlow(length);
  let from = start;
  let at = 0;
  for (let i = first; i < last; i += 2) {
    at += bytes.copy(out, at, from, cuts[i]);
    const insert = inserts[i / 2]!;
    if (insert !== '') at += out.write(insert, at, 'latin1');
    from = cuts[i + 1]!;
  }
  bytes.copy(out, at, from, end);
  return out;
}
