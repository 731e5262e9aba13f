import { stringify } from 'csv-stringify/sync';
import { ID_KEY, TYPE_KEY, type Page } from './list.ts';

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

/** The record as the service wrote it, without what the export has added. */
function jsonLine(record: Page['records'][number]): string {
  if (!record) return 'null\n';
  const { [ID_KEY]: _id, [TYPE_KEY]: _type, ...selected } = record;
  return `${JSON.stringify(selected)}\n`;
}

/** Matches cells that are quoted: an empty text, unlike null, and text with a carriage return. */
const QUOTED = /^$|\r/;

function csv(rows: readonly (readonly (string | null)[])[]): string {
  return stringify(rows as (string | null)[][], { quoted_match: QUOTED });
}

/** A nested object or list is its JSON; null is an empty cell. */
function cell(value: unknown): string | null {
  if (value === null) return null;
  return typeof value === 'string' ? defused(value) : JSON.stringify(value);
}

/** Puts an apostrophe before text that a spreadsheet would run as a formula (OWASP, CSV injection). Numbers stay as they are. */
function defused(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}
