import { isObjectType, Kind, type GraphQLError, type SelectionNode } from 'graphql';
import type { UpstreamError } from '../../answers/answer-errors.ts';
import { PagesRefused } from '../../paging/failures.ts';
import { lookUp, type LookedUp } from '../../paging/look-up.ts';
import type { FetchPage } from '../../paging/page.ts';
import { defaultOf, type Adapter, type Entity } from '../../schema/derived.ts';
import type { Call, Requester } from '../call.ts';
import { walkKeys, type FieldParts } from '../lists/list-field.ts';
import { holdPage, type ListRecord } from '../output.ts';
import {
  NullList,
  pageFetcher,
  pageRequests,
  pageSizesOf,
  type PageSource,
} from '../pages/page.ts';
import {
  failedLookup,
  type LookupResult,
  type RecordId,
  type RecordLookup,
} from './record-references.ts';

/** Finds records by their ids in a list at the root, using what earlier walks left behind of it. */
export function lookupInList(
  { writer, scope, operation, drains, telemetry, sizes }: FieldParts,
  { type }: Entity,
  adapter: Adapter,
  selections: readonly SelectionNode[],
): (call: Call) => RecordLookup {
  const requests = (recordSelections: (readonly SelectionNode[])[]) =>
    pageRequests({
      writer,
      scope,
      operation,
      adapter,
      args: [],
      recordSelections,
      counts: false,
      telemetry,
    });
  const shown = requests([onlyOf(type.name, adapter, selections)]);
  const bare = requests([[]]);
  // This is the list that drains without filters read, so both share its page index.
  const keyOf = walkKeys(adapter.name, defaultsOf(adapter), operation);
  // Created here: see `fetcherOf`.
  const sizeNow = () => sizes.of(bare.sized);

  return (call) => {
    const { variables } = call;
    const fetchShown = fetcherOf({ adapter, requests: shown, variables, telemetry, sizes });
    const fetchBare = fetcherOf({ adapter, requests: bare, variables, telemetry, sizes });
    return {
      name: `${type.name} ${shown.name(variables)}`,
      aliasBytes: shown.keyBytes.ofAliases,
      find: async (ids) => {
        // With a custom scalar, 12 and "12" are two ids of one record.
        const identities = ids.map((id) => `${type.name}:${textOf(id)}`);
        const list = {
          fetchPage: held(call, fetchShown(call)),
          fetchIdentities: fetchBare(call.forSearch),
          ...drains.lookup({
            key: keyOf(variables),
            field: `${adapter.parent}.${adapter.name}`,
            name: adapter.name,
            origin: { caller: call.caller, cause: call.cause },
            identities: fetchBare,
            sizeNow,
            pageSizes: pageSizesOf(adapter),
          }),
        };
        const { signal, pages } = call;
        const options = { signal, pages: pages.forSearch };
        const results = await lookUp(list, [...new Set(identities)], options);
        return identities.map((identity) => lookupResult(results.get(identity)));
      },
    };
  };
}

/** Routers may write 12 as 12.0. */
function textOf(id: RecordId): string {
  if (id.startsWith('"')) return JSON.parse(id) as string;
  const number = Number(id);
  return Number.isSafeInteger(number) ? String(number) : id;
}

function lookupResult(result: LookedUp<ListRecord> | undefined): LookupResult | undefined {
  if (!result) return undefined;
  if ('error' in result) return failedLookup(result.error);
  return {
    record: result.record,
    unplacedErrors: result.unplacedErrors as readonly UpstreamError[],
  };
}

/** Created here, not where the call is in scope: the walk of a list keeps it for callers to come. */
function fetcherOf(source: PageSource): (requester: Requester) => FetchPage<ListRecord> {
  return (requester) => orNothing(pageFetcher(source, requester));
}

/** Counts the pages, whose records are kept, against the memory that answers may hold. */
function held(call: Call, fetchPage: FetchPage<ListRecord>): FetchPage<ListRecord> {
  return async (request, signal) => {
    const page = await fetchPage(request, signal);
    try {
      await holdPage(call, page);
    } catch (error) {
      const { message, extensions } = error as GraphQLError;
      // A failure of the page itself would be narrowed down to one of its records.
      throw new PagesRefused(message, { extensions });
    }
    return page;
  };
}

/** Turns a list that is null into an empty page. */
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
    filters
      .map((filter) => [filter.name, defaultOf(filter)] as const)
      .filter(([, value]) => value !== undefined),
  );
}

/** Restricts selections to one type in a list of several types. */
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
