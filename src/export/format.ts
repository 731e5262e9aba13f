import { stringify } from 'csv-stringify/sync';
import { ID_KEY } from './list.ts';
import type { Page } from './pages.ts';

export type FormatName = 'ndjson' | 'csv';

/** How records become lines of a file. */
interface RecordFormat {
  /** The beginning of a file. */
  readonly header: string;
  /** @returns the lines of these records, each with its line break */
  readonly write: (records: Page['records']) => string;
}

/** @param keys the response keys of a record, in the order of columns */
export function recordFormat(name: FormatName, keys: readonly string[]): RecordFormat {
  if (name === 'ndjson') {
    return { header: '', write: (records) => records.map((record) => jsonLine(record)).join('') };
  }
  const row = (record: Page['records'][number]) => keys.map((key) => cell(record?.[key] ?? null));
  return { header: csv([keys]), write: (records) => csv(records.map(row)) };
}

/** The record as the service wrote it, without the id that the export has added. */
function jsonLine(record: Page['records'][number]): string {
  if (!record) return 'null\n';
  const { [ID_KEY]: _, ...selected } = record;
  return `${JSON.stringify(selected)}\n`;
}

/** Matches cells that are quoted: an empty text, unlike null, and text with what programs may take for a line break. */
const QUOTED = /^$|[\r\n\v\f\u0085\u2028\u2029]/;

function csv(rows: readonly (readonly (string | null)[])[]): string {
  return stringify(rows as (string | null)[][], { quoted_match: QUOTED });
}

/** A nested object or list is its JSON; null is an empty cell. */
function cell(value: unknown): string | null {
  if (value === null) return null;
  return typeof value === 'string' ? defused(value) : JSON.stringify(value);
}

/**
 * Matches text that begins with the sign of a formula or one that looks like it, even behind invisible characters:
 * imports remove spaces, control characters and byte order marks. Text that begins with a tab or a line break could be
 * split there. `escape_formulas` of csv-stringify looks at the first character only.
 */
const FORMULA =
  /^(?:[\t\r\n]|[\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]*[=+\-@＝＋－＠﹦﹢﹣﹫⁼₌⁺₊⁻₋−])/u;

/** Puts an apostrophe before text that a spreadsheet would run. It does not show the apostrophe. */
function defused(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}
