import { stringify } from 'csv-stringify/sync';
import type { Json } from '../json.ts';
import { ID_KEY } from './export-operation.ts';

export type FormatName = 'ndjson' | 'csv';

/** How records become lines of a file. */
export interface RecordFormat {
  /** What a file begins with. */
  readonly header: string;
  /** @returns the lines of these records, each with its line break */
  write(records: readonly Json[]): string;
}

/** @param keys the response keys of a record, in the order of columns */
export function recordFormat(name: FormatName, keys: readonly string[]): RecordFormat {
  if (name === 'ndjson') {
    return { header: '', write: (records) => records.map((one) => `${jsonLine(one)}\n`).join('') };
  }
  const wanted = new Set(keys);
  return {
    header: csv([keys]),
    write: (records) =>
      csv(
        records.map((record) => {
          const members = record.members(wanted);
          return keys.map((key) => cell(members.get(key)));
        }),
      ),
  };
}

/** The record as the service wrote it, without the id that only the export selected. */
function jsonLine(record: Json): string {
  const text =
    record.kind === 'object'
      ? `{${Array.from(record.members())
          .flatMap(([key, { raw }]) => (key === ID_KEY ? [] : [`${JSON.stringify(key)}:${raw}`]))
          .join(',')}}`
      : record.raw;
  // In JSON, a line break stands only between values: in strings it is escaped.
  return text.replaceAll(/[\r\n]+\s*/g, '');
}

/**
 * `escape_formulas` puts an apostrophe before text that a spreadsheet would run, such as `=1+1`, but not before a
 * negative number.
 */
function csv(rows: readonly (readonly unknown[])[]): string {
  return stringify(rows as unknown[][], {
    escape_formulas: true,
    cast: { boolean: String },
  });
}

/** A nested object or list is its JSON; null is an empty cell, as an empty text is. */
function cell(value: Json | undefined): string | number | bigint | boolean | null {
  switch (value?.kind) {
    case undefined:
    case 'null':
      return null;
    case 'string':
      return value.string!;
    case 'number':
      return exactNumber(value.raw);
    case 'boolean':
      return value.raw === 'true';
    default:
      return value!.raw;
  }
}

/** A number where that keeps the value; otherwise the digits as they were written. */
function exactNumber(raw: string): string | number | bigint {
  if (/^-?\d+$/.test(raw)) return BigInt(raw);
  const number = Number(raw);
  return String(number) === raw ? number : raw;
}
