import { isObjectType, Kind, type SelectionNode } from 'graphql';
import type { UpstreamError } from '../answers/errors.ts';
import { lookUp } from '../paging/lookup/look-up.ts';
import type { LookedUp } from '../paging/lookup/page-reader.ts';
import type { FetchPage } from '../paging/page.ts';
import type { Adapter, Entity } from '../schema/derived.ts';
import type { Asking, Call } from './call.ts';
import { NullList, pageFetcher } from './fetch-page.ts';
import { walkKey } from './list-key.ts';
import type { ListRecord } from './list-record.ts';
import { pageText, type PageText } from './page-text.ts';
import type { LookupParts } from './lookup-parts.ts';
import { asError, type Finding, type RecordLookup } from './record-loader.ts';

/** Finds records in a list of the root, by what is remembered of it. */
export function lookupInList(
  { writer, scope, operation, selections, drains, watch }: LookupParts,
  { type }: Entity,
  adapter: Adapter,
): (call: Call) => RecordLookup {
  // As who drains the list without filters reads it: it is one list for both.
  const { directives: _, ...plain } = operation;
  const text = (places: (readonly SelectionNode[])[]) =>
    pageText({ writer, scope, operation: plain, adapter, args: [], places });
  const shown = text([onlyOf(type.name, adapter, selections)]);
  const bare = text([[]]);
  const key = walkKey(adapter.name, defaultsOf(adapter));

  return (call) => {
    const { variables } = call;
    const pagesOf = (of: PageText, asking: Asking): FetchPage<ListRecord> =>
      orNothing(pageFetcher({ adapter, text: of, variables, watch }, asking));
    return {
      name: `${type.name} ${shown.name(variables)}`,
      find: async (ids) => {
        // 12 and "12" are two ids for a custom scalar, and one record.
        const byIdentity = Map.groupBy(ids, (id) => `${type.name}:${id}`);
        const list = {
          fetchPage: pagesOf(shown, call),
          fetchIdentities: pagesOf(bare, call),
          ...drains.lookedUp({
            key,
            field: `${adapter.parent}.${adapter.name}`,
            name: adapter.name,
            asker: call,
            fetcher: (asking) => pagesOf(bare, asking),
          }),
        };
        const found = await lookUp(list, [...byIdentity.keys()], call);
        return new Map(
          Array.from(found).flatMap(([each, result]) => {
            if (result === null) return [];
            const finding = findingOf(result);
            return (byIdentity.get(each) ?? []).map((id) => [id, finding] as const);
          }),
        );
      },
    };
  };
}

function findingOf(result: NonNullable<LookedUp<ListRecord>>): Finding {
  if ('error' in result) return asError(result.error);
  return { record: result.record, beside: result.beside as readonly UpstreamError[] };
}

/** A list that is null holds nothing. */
function orNothing(fetchPage: FetchPage<ListRecord>): FetchPage<ListRecord> {
  return async (request, signal) => {
    try {
      return await fetchPage(request, signal);
    } catch (error) {
      if (error instanceof NullList) return { items: [], hasNextPage: false, endCursor: null };
      throw error;
    }
  };
}

function defaultsOf({ filters }: Adapter): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    filters.flatMap(({ name, defaultValue }) =>
      defaultValue === undefined ? [] : [[name, defaultValue]],
    ),
  );
}

/** In a list of several types, what is wanted of one of them. */
function onlyOf(
  type: string,
  { nodeType }: Adapter,
  selections: readonly SelectionNode[],
): readonly SelectionNode[] {
  if (isObjectType(nodeType)) return selections;
  return [
    {
      kind: Kind.INLINE_FRAGMENT,
      typeCondition: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: type } },
      selectionSet: { kind: Kind.SELECTION_SET, selections },
    },
  ];
}
