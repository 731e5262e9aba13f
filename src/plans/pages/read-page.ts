import { isNullableType } from 'graphql';
import { ownError, type UpstreamError } from '../../answers/answer-errors.ts';
import type { Found } from '../../answers/envelope.ts';
import { readValue } from '../../answers/read.ts';
import type { Reading } from '../../answers/read.ts';
import type { Shape } from '../../answers/shape.ts';
import type { TooBig } from '../../errors.ts';
import type { Json } from '../../json.ts';
import type { Pausable } from '../../pausable.ts';
import { MAX_SERVICE_CURSOR } from '../../paging/cursor.ts';
import { identitiesOf, type Page } from '../../paging/page.ts';
import type { Adapter } from '../../schema/derived.ts';
import type { ResultReading } from '../requests/results.ts';
import { isPlaceholder, type ListRecord, type RecordPage } from '../output.ts';
import type { RecordIdentity } from './record-identity.ts';

/** The answer to the request for a page. */
export interface PageAnswer {
  /** Undefined if the answer holds no page. */
  readonly page: Page<ListRecord> | undefined;
  /** Whether the list is null without an error, as its type may allow. */
  readonly isNull: boolean;
  /** The unplaced errors, whose path leads to no record. */
  readonly errors: readonly UpstreamError[];
  /** The keys of the inlined pages whose failure also nulled their parent. */
  readonly nullingPages: ReadonlySet<string>;
  /** Why the page was refused as a whole, if that was for its size. */
  readonly tooBig?: TooBig | undefined;
}

/** The key of the page's count: see `PagedField.count`. */
export const COUNT_KEY = '_rsCount';

export interface PageReading {
  readonly adapter: Adapter;
  readonly identity: RecordIdentity;
  readonly shapes: readonly Shape[];
  readonly result: ResultReading;
}

/** Reads a page in general, whatever its form, and gives each record its own errors. */
export function* readPage(
  { adapter, identity, shapes, result }: PageReading,
  found: Found,
  keys: readonly string[],
): Pausable<Omit<PageAnswer, 'nullingPages' | 'tooBig'>> {
  const read = result.read(found);
  // All types of a result but the page are errors.
  if (read.kind !== 'wanted') {
    const failed = read.kind === 'failure' ? read.errors : found.errors;
    return { page: undefined, isNull: false, errors: failed };
  }
  const { value, errors: given } = read.found;
  // Only the gateway asked for the count.
  const errors = given.filter(({ path }) => path?.[0] !== COUNT_KEY || value?.isNull !== false);
  const nullable = isNullableType(adapter.field.type) && value?.isNull === true;
  // A list that is null without an error, as its type allows, has no records.
  const ifNull = isNullableType(adapter.itemsType) && errors.length === 0 ? NO_RECORDS : undefined;
  const lists = keys.map((key) => {
    const items = value?.kind === 'object' ? value.get(key) : undefined;
    if (items?.kind === 'list') return Array.from(items.elements());
    return items?.isNull ? ifNull : undefined;
  });
  const pageInfo = value?.get('pageInfo');
  const hasNextPage = pageInfo?.get('hasNextPage');
  const [first] = lists;
  if (!first || lists.some((list) => !list) || hasNextPage?.kind !== 'boolean') {
    return { page: undefined, isNull: nullable && errors.length === 0, errors };
  }
  const endCursor = cursorFrom(pageInfo?.get('endCursor'));
  if (endCursor !== null && endCursor.length > MAX_SERVICE_CURSOR) {
    return { page: undefined, isNull: false, errors: [LONG_CURSOR] };
  }
  const { byRecord, unplaced } = sortErrors(errors, keys, first.length);
  const readings: Reading[][] = [];
  let memory = endCursor?.length ?? 0;
  for (const [selection, list] of lists.entries()) {
    const some: Reading[] = [];
    readings.push(some);
    for (let index = 0; index < first.length; index += 1) {
      const own = byRecord.get(`${selection}.${index}`) ?? NO_ERRORS;
      const reading = yield* readValue(shapes[selection]!, list![index], own);
      memory += bytesOf(reading);
      some.push(reading);
    }
  }
  const records: RecordPage = { kind: 'readings', readings, memory };
  const limit = Number(pageInfo?.get('first')?.raw);
  const total = value?.get(COUNT_KEY);
  const page: Page<ListRecord> = {
    items: first.map((record, index) => ({ identity: identity.of(record), page: records, index })),
    hasNextPage: hasNextPage.raw === 'true',
    endCursor,
    memory,
    limit: limit > 0 ? limit : undefined,
    total: total?.kind === 'number' ? countFrom(total.raw) : undefined,
    unplacedErrors: unplaced,
  };
  return {
    page: { ...page, identities: identitiesOf(page) },
    isNull: false,
    errors: unplaced,
  };
}

/** Undefined unless it is a number of records. */
export function countFrom(text: string): number | undefined {
  const count = Number(text);
  return Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}

function bytesOf({ parts = [] }: Reading): number {
  return parts.reduce((sum, part) => sum + (isPlaceholder(part) ? 0 : part.length), 0);
}

const LONG_CURSOR = ownError(
  'UPSTREAM_BAD_RESPONSE',
  `The recruiting service returned a page with a cursor of more than ${MAX_SERVICE_CURSOR} characters, which the gateway does not ` +
    'keep. Report this to the support of the service; the plain list of the service can still be read page by page.',
);

const NO_RECORDS: readonly Json[] = [];
const NO_ERRORS: readonly UpstreamError[] = [];

function cursorFrom(cursor: Json | undefined): string | null {
  // A part of the answer's text would keep all of it for as long as the cursor is remembered.
  const digits = cursor?.kind === 'number' ? Buffer.from(cursor.raw).toString('latin1') : undefined;
  return digits ?? cursor?.string ?? null;
}

/** Errors whose path leads to no record of the page belong to the list. */
function sortErrors(errors: readonly UpstreamError[], keys: readonly string[], count: number) {
  const byRecord = new Map<string, UpstreamError[]>();
  const unplaced: UpstreamError[] = [];
  for (const error of errors) {
    const [key, index, ...path] = error.path ?? [];
    const selection = keys.indexOf(String(key));
    if (selection < 0 || typeof index !== 'number' || index >= count) {
      unplaced.push(error);
      continue;
    }
    const name = `${selection}.${index}`;
    const own = byRecord.get(name) ?? [];
    own.push({ ...error, path });
    byRecord.set(name, own);
  }
  return { byRecord, unplaced };
}
