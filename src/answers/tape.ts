/** What a scan notes on its way. One tape is used again and again: nothing of it is kept. */
export interface Tape {
  /** Start and end of each part that is left out or replaced, in the order of the bytes. */
  readonly cuts: number[];
  /** What stands in place of each of them. */
  readonly inserts: string[];
  /** Start and end of each record of the marked lists, one after the other. */
  readonly records: number[];
  /** Start and end of the id of each record, as it was written; 0 and 0 for a record without one. */
  readonly ids: number[];
  /** The type of each record; empty for one without an id. */
  readonly types: string[];
  /** How many records each marked list has. */
  readonly counts: number[];
  /** Start and end of each noted field, by its place among the notes. */
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

/** A copy of a part of the bytes, with what is cut out of it. */
export function cut(
  bytes: Buffer,
  start: number,
  end: number,
  { cuts, inserts }: Pick<Tape, 'cuts' | 'inserts'>,
): Buffer {
  let first = 0;
  while (first < cuts.length && cuts[first]! < start) first += 2;
  // Behind the last digit of an id a quote is put in, and nothing is cut.
  let last = first;
  while (last < cuts.length && (cuts[last]! < end || cuts[last + 1] === end)) last += 2;
  let length = end - start;
  for (let i = first; i < last; i += 2) {
    length += inserts[i / 2]!.length - (cuts[i + 1]! - cuts[i]!);
  }
  // Of its own: a part of a shared pool would keep all of that alive.
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
