import {
  getNamedType,
  getNullableType,
  GraphQLInt,
  isNullableType,
  type GraphQLObjectType,
  type SelectionNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import {
  CursorRefusedError,
  PageFailedError,
  type Page,
  type SizeRefusedError,
} from '../paging/page.ts';
import type { Adapter } from '../schema/derived.ts';
import type { AnswerError } from './answer.ts';
import type { Call } from './call.ts';
import { identityOf } from './identity.ts';
import { isJsonObject } from './json.ts';
import { compileMend, mended, type Mend } from './mend.ts';
import { PageRecords } from './page-records.ts';
import type { PreparedOperation } from './prepared-operation.ts';
import { resultUnion } from './result-union.ts';
import { selectedFields } from './selected-fields.ts';
import { ServiceFailure, type PlacedValue } from './service-answer.ts';
import type { Shared } from './shared.ts';
import { fieldNode, orTypename } from './syntax.ts';

const COUNT = '_rs_count';

/**
 * Selects a page of a list, and reads it.
 *
 * @param selected what each place selects of a record. Without places, pages have only the identities of their records,
 *   and the number of all records where adapters.json names it
 */
export function pageReader(
  shared: Shared,
  prepared: PreparedOperation,
  adapter: Adapter,
  selected: readonly (readonly SelectionNode[])[],
) {
  const { itemsType, nodeType, count } = adapter;
  const isBare = selected.length === 0;
  const places = isBare ? [[]] : selected;
  const keys = places.map((_, place) => (place === 0 ? 'items' : `_rs_items${place}`));
  const identity = identityOf(shared.schema, adapter, places[0]!);
  const { select, failureIn } = resultUnion(adapter.result, shared.served.upstreamType);
  const mends = places.map((selections) => {
    const fields = selectedFields({ selections }, prepared.fragments);
    return compileMend(shared, prepared, [nodeType], fields);
  });
  const lists = places.map((selections, place) =>
    fieldNode('items', {
      alias: keys[place],
      selections: orTypename([...(place === 0 ? identity.selections : []), ...selections]),
    }),
  );
  const info = ['hasNextPage', 'endCursor', ...sizeFields(adapter)].map((name) => fieldNode(name));
  const selections = select([
    fieldNode('pageInfo', { selections: info }),
    ...(isBare && count !== undefined ? [fieldNode(count, { alias: COUNT })] : []),
    ...lists,
  ]);

  return {
    /** Of the paged field. */
    selections,
    /**
     * @param cursor with which the page was requested @param size with which it was requested
     * @throws PageFailedError, CursorRefusedError
     */
    read: async (
      call: Call,
      placed: PlacedValue,
      cursor: string | null,
      size: number,
    ): Promise<Page<PageRecords>> => {
      const failure = failureIn(placed.value);
      const page = isJsonObject(placed.value) && !failure ? placed.value : {};
      const errors = failure ? [{ service: failure, path: [] }] : placed.errors;
      // Without an error, no items are no records.
      const isNullList = (items: unknown) =>
        items === null && errors.length === 0 && isNullableType(itemsType);
      const items = keys.map((key) => (isNullList(page[key]) ? [] : page[key])) as unknown[][];
      const { pageInfo } = page;
      const isPage = items.every(Array.isArray) && isJsonObject(pageInfo);
      // Errors without a record of their own travel with the first one: without records they would be lost.
      if (!isPage || (errors.length > 0 && items[0]!.length === 0)) {
        if (errors.length === 0) throw badPage(NO_PAGE);
        // A record that fails says nothing of the cursor.
        const isInside = errors.some(({ path }) => path !== undefined && path.length > 0);
        const isOfCursor = cursor !== null && !isPage && !isInside;
        throw failedBy(isOfCursor ? CursorRefusedError : PageFailedError, errors);
      }
      const { hasNextPage, endCursor, first: used } = pageInfo;
      // Null says no; taken for a no, anything else would cut the list short.
      if (hasNextPage !== null && typeof hasNextPage !== 'boolean') throw badPage(NO_PAGE);
      const ids = items[0]!.map((record) => identity.of(record));
      const total = page[COUNT];
      return {
        records: await recordsIn({ keys, mends }, call, items, errors),
        ...(typeof total === 'number' && total >= 0 && { count: total }),
        ids,
        hasNextPage: hasNextPage === true,
        endCursor: typeof endCursor === 'string' ? endCursor : null,
        size: typeof used === 'number' && used > 0 ? used : size,
      };
    },
  };
}

/** @param items the records of each place @param placed what failed in the page */
async function recordsIn(
  {
    keys,
    mends,
  }: { readonly keys: readonly string[]; readonly mends: readonly (Mend | undefined)[] },
  call: Call,
  items: readonly (readonly unknown[])[],
  placed: PlacedValue['errors'],
): Promise<PageRecords> {
  const errors: AnswerError[][] = [];
  const add = (error: AnswerError, place: number) => {
    const [index, ...rest] = error.path ?? [];
    const isOfRecord = typeof index === 'number' && items[place]?.[index] !== undefined;
    const path = isOfRecord ? [place, ...rest] : [];
    (errors[isOfRecord ? index : 0] ??= []).push({ ...error, path });
  };
  for (const error of placed) {
    const [key, ...path] = error.path ?? [];
    add({ ...error, path }, keys.indexOf(String(key)));
  }
  for (const [place, mending] of mends.entries()) {
    const inside = mending ? await mended(mending, items[place], call) : [];
    for (const error of inside) add(error, place);
  }
  return new PageRecords(items, errors);
}

/** @param errors of the service, at least one */
export function failedBy(
  Failed: typeof PageFailedError | typeof SizeRefusedError | typeof CursorRefusedError,
  errors: PlacedValue['errors'],
): Error {
  const cause = new ServiceFailure(errors.map(({ service }) => service));
  return new Failed(cause.message, { cause });
}

export function badPage(message: string): PageFailedError {
  return new PageFailedError(message, { cause: codedError('UPSTREAM_BAD_RESPONSE', message) });
}

const NO_PAGE =
  'The recruiting service returned a page without items or pageInfo. Try again later.';

/** The field of `pageInfo` with the page size that the service used, if there is one. */
function sizeFields({ pageType }: Adapter): readonly string[] {
  const pageInfo = getNamedType(pageType.getFields()['pageInfo']!.type) as GraphQLObjectType;
  const first = pageInfo.getFields()['first'];
  return first && getNullableType(first.type) === GraphQLInt ? ['first'] : [];
}
