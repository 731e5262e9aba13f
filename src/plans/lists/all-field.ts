import type { Path, UpstreamError } from '../../answers/answer-errors.ts';
import { checkedCount } from '../../paging/connection/connection-arguments.ts';
import { drainPages, type DrainedPage } from '../../paging/drain/drain.ts';
import { CursorEncoder, decodeCursor, type Position } from '../../paging/cursor.ts';
import type { Call } from '../call.ts';
import {
  holdPage,
  writePageRecords,
  type FieldValue,
  type ListRecord,
  type Output,
} from '../output.ts';
import { errorsOfList } from '../pages/fetch-page.ts';
import type { OpenedList } from './list-field.ts';

/** Reads an `all…` field: drains the list into one array. */
export async function readAll(call: Call, list: () => OpenedList, path: Path): Promise<FieldValue> {
  const output: Output = { parts: ['['], errors: [] };
  let count = 0;
  try {
    for await (const page of drainedPages(list(), 'whole')) {
      const waiting = holdPage(call, page.records);
      if (waiting) await waiting;
      if (page.records.length > 0 && count > 0) output.parts.push(',');
      if (!writePage(page, output, { path, offset: count }))
        return { parts: undefined, errors: output.errors };
      count += page.records.length;
    }
  } catch (error) {
    return { parts: undefined, errors: [...output.errors, ...errorsOfList(error, path)] };
  }
  output.parts.push(']');
  return output;
}

/** @returns false when a record is null that must not be */
function writePage(
  { records, unplacedErrors }: DrainedPage<ListRecord>,
  output: Output,
  at: { readonly path: Path; readonly offset: number },
): boolean {
  for (const error of unplacedErrors as readonly UpstreamError[])
    output.errors.push({ ...error, path: at.path });
  return writePageRecords(records, output, at);
}

/**
 * Drains the list of an `all…` field as its arguments say.
 *
 * @param given `whole`: the caller keeps all records until the end
 * @throws BAD_USER_INPUT, CURSOR_INVALID and the errors of drains
 */
export function drainedPages(
  list: OpenedList,
  given: 'parts' | 'whole',
): AsyncGenerator<DrainedPage<ListRecord>, void, undefined> {
  const { field, call, args, keys, isNested } = list;
  const names = field.adapter.all!;
  const { [names.limit]: most, [names.after]: after } = args;
  const limit = typeof most === 'number' ? checkedCount(names.limit, most) : undefined;
  const position = decodeCursor(keys.cursors, after);
  if (field.refusal) throw field.refusal;
  const keepsAll = given === 'whole';
  if (keepsAll) expectBytes(list, limit);
  const selection = isNested ? undefined : nameOf(list, call);
  const source = list.source('shown');
  const pages = field.parts.drains.walk(list.drained(source, selection), {
    position,
    limit,
    call,
    keepsAll,
  });
  const { signal, drainBudget: budget } = call;
  const toCursor = (at: Position) => new CursorEncoder(keys.cursors).encode(at);
  return drainPages(pages, { limit, position, budget, signal, toCursor, given });
}

/** Refuses answers that are too large before anything is read: a key is repeated in every record, however long. */
function expectBytes({ field, call, keys, isNested }: OpenedList, limit: number | undefined): void {
  const { all, ofAliases } = field.shown.keyBytes;
  const length = field.parts.drains.lengthOf(keys.walk);
  // Nested lists share one limit of records, and were announced together when the operation began.
  if (isNested && length === undefined) return;
  const most = Math.min(limit ?? Infinity, call.drainBudget.max);
  // The length of a list that was never walked is unknown. Then only the bytes that the caller's aliases add count.
  call.held.expect(length === undefined ? most * ofAliases : Math.min(most, length) * all);
}

function nameOf({ field }: OpenedList, { variables }: Call): string {
  return field.shown.name(variables);
}
