import { stringify } from 'csv-stringify/sync';
import type { Json } from './json.ts';
import { ID_KEY } from './export-operation.ts';

export type FormatName = 'ndjson' | 'csv';

/** How records become lines of a file. */
interface RecordFormat {
  /** The beginning of a file. */
  readonly header: string;
  /** @returns the lines of these records, each with its line break */
  write(records: readonly Json[]): string;
}

/** @param keys the response keys of a record, in the order of columns */
export function recordFormat(name: FormatName, keys: readonly string[]): RecordFormat {
  if (name === 'ndjson') {
    return {
      header: '',
      write: (records) => records.map((record) => `${jsonLine(record)}\n`).join(''),
    };
  }
  const row = (record: Json) => {
    const members = record.members();
    return keys.map((key) => cell(members.get(key)));
  };
  return {
    header: csv([keys]),
    write: (records) => csv(records.map(row)),
  };
}

/** The record as the service wrote it, without the id that the export has added. */
function jsonLine(record: Json): string {
  const members = Array.from(record.members()).filter(([key]) => key !== ID_KEY);
  const text =
    record.kind === 'object'
      ? `{${members.map(([key, { raw }]) => `${JSON.stringify(key)}:${raw}`).join(',')}}`
      : record.raw;
  // In JSON, a line break stands only between values: in strings it is escaped.
  return text.replaceAll(/[\r\n]+\s*/g, '');
}

/** Matches cells that are quoted: an empty text, unlike null, and text with what programs may take for a line break. */
const QUOTED = /^$|[\r\n\v\f\u0085\u2028\u2029]/;

function csv(rows: readonly (readonly (string | null)[])[]): string {
  return stringify(rows as (string | null)[][], { quoted_match: QUOTED });
}

/** A nested object or list is its JSON; null is an empty cell. */
function cell(value: Json | undefined): string | null {
  switch (value?.kind) {
    case undefined:
    case 'null':
      return null;
    case 'string':
      return defused(value.string!);
    default:
      return value!.raw;
  }
}

/**
 * Matches text that begins with the sign of a formula or one that looks like it, even behind invisible characters:
 * imports remove spaces, control characters and byte order marks. Text that begins with a tab or a line break could be
 * split there.
 */
const FORMULA =
  /^(?:[\t\r\n]|[\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]*[=+\-@＝＋－＠﹦﹢﹣﹫⁼₌⁺₊⁻₋−])/u;

/** Puts an apostrophe before text that a spreadsheet would run. It does not show the apostrophe. */
function defused(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}
