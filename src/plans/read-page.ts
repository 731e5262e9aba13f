import { isNullableType } from 'graphql';
import type { UpstreamError } from '../answers/errors.ts';
import { readValue, type Reading } from '../answers/read.ts';
import type { Found } from '../answers/service-answer.ts';
import type { Shape } from '../answers/shape.ts';
import type { Json } from '../json.ts';
import type { Page } from '../paging/page.ts';
import type { Adapter } from '../schema/derived.ts';
import type { ListRecord, RecordPage } from './list-record.ts';
import type { RecordIdentity } from './record-identity.ts';

/** What came in answer to the request for a page. */
export interface PageAnswer {
  /** Undefined when what came is no page. */
  readonly page: Page<ListRecord> | undefined;
  /** The whole list is null, for no stated reason, as its type may allow. */
  readonly isNull: boolean;
  /** What stands at no record; of a page they are its `beside`. */
  readonly errors: readonly UpstreamError[];
  readonly takenAlong: ReadonlySet<string>;
}

export interface PageReading {
  readonly adapter: Adapter;
  readonly identity: RecordIdentity;
  readonly shapes: readonly Shape[];
}

/** Reads what came in place of a page, and gives each record its own errors. */
export function readPage(
  { adapter, identity, shapes }: PageReading,
  { value, errors }: Found,
  keys: readonly string[],
): Omit<PageAnswer, 'takenAlong'> {
  const nullable = isNullableType(adapter.field.type) && (value === undefined || value.isNull);
  // A list that its type allows to be null, and that is so for no stated reason, holds nothing.
  const ifNull = isNullableType(adapter.itemsType) && errors.length === 0 ? NO_RECORDS : undefined;
  const lists = keys.map((key) => {
    const items = value?.kind === 'object' ? value.get(key) : undefined;
    if (items?.kind === 'list') return items.values;
    return value?.kind === 'object' && (items === undefined || items.isNull) ? ifNull : undefined;
  });
  const pageInfo = value?.get('pageInfo');
  const hasNextPage = pageInfo?.get('hasNextPage');
  const [first] = lists;
  if (!first || lists.some((list) => !list) || hasNextPage?.kind !== 'boolean') {
    return { page: undefined, isNull: nullable && errors.length === 0, errors };
  }
  const { byRecord, beside } = sortErrors(errors, keys, first.length);
  const readings = lists.map((list, of) =>
    first.map((_, place) =>
      readValue(shapes[of]!, list![place], byRecord.get(`${of}.${place}`) ?? NO_ERRORS),
    ),
  );
  const size = readings.reduce(
    (sum, some) => sum + some.reduce((all, reading) => all + sizeOf(reading), 0),
    0,
  );
  const page: RecordPage = { kind: 'readings', readings, size };
  const limit = Number(pageInfo?.get('first')?.raw);
  return {
    page: {
      items: first.map((record, place) => ({ identity: identity.of(record), page, place })),
      hasNextPage: hasNextPage.raw === 'true',
      endCursor: cursorFrom(pageInfo?.get('endCursor')),
      limit: limit > 0 ? limit : undefined,
      beside,
    },
    isNull: false,
    errors: beside,
  };
}

function sizeOf({ parts = [] }: Reading): number {
  return parts.reduce((sum, part) => sum + (typeof part === 'string' ? part.length : 0), 0);
}

const NO_RECORDS: readonly Json[] = [];
const NO_ERRORS: readonly UpstreamError[] = [];

function cursorFrom(cursor: Json | undefined): string | null {
  return (cursor?.kind === 'number' ? cursor.raw : cursor?.string) ?? null;
}

/** What stands at no record that is there belongs to the list. */
function sortErrors(errors: readonly UpstreamError[], keys: readonly string[], count: number) {
  const byRecord = new Map<string, UpstreamError[]>();
  const beside: UpstreamError[] = [];
  for (const error of errors) {
    const [key, place, ...path] = error.path ?? [];
    const of = keys.indexOf(String(key));
    if (of < 0 || typeof place !== 'number' || place >= count) {
      beside.push(error);
      continue;
    }
    const there = byRecord.get(`${of}.${place}`) ?? [];
    there.push({ ...error, path });
    byRecord.set(`${of}.${place}`, there);
  }
  return { byRecord, beside };
}
