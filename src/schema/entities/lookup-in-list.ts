import { isObjectType, Kind, type GraphQLResolveInfo, type SelectionNode } from 'graphql';
import { hash } from 'node:crypto';
import { lookUp } from '../../paging/lookup/look-up.ts';
import type { LookedUp } from '../../paging/lookup/page-reader.ts';
import type { FetchPage } from '../../paging/page.ts';
import type { AskingContext } from '../asking/asking-context.ts';
import { identitySelection } from '../asking/identity-selection.ts';
import { NullList, pageFetcher, type PageSource } from '../asking/page-fetcher.ts';
import { selectionName } from '../asking/page-question.ts';
import type { UpstreamRecord } from '../asking/read-page.ts';
import type { UpstreamLink } from '../asking/upstream-link.ts';
import type { Adapter } from '../derivation/adapter.ts';
import type { Entity } from '../derivation/entity.ts';
import type { Drains } from '../drains.ts';
import { walkKey } from '../list-key.ts';
import { asError, type Finding, type RecordLookup } from './record-loader.ts';

/** Finds records in a list of the root, by what is remembered of it. */
export function lookupInList(
  { link, drains }: { link: UpstreamLink; drains: Pick<Drains, 'lookedUp'> },
  { type }: Entity,
  adapter: Adapter,
  selected: readonly SelectionNode[],
  info: GraphQLResolveInfo,
): RecordLookup {
  const identity = identitySelection(link.schema, adapter.nodeType);
  const filters = defaultsOf(adapter);
  const bare: PageSource = { link, adapter, identity, info, filters, selections: [[]] };
  const source: PageSource = { ...bare, selections: [onlyOf(type.name, adapter, selected)] };
  const key = walkKey(adapter.name, filters);
  return {
    name: hash('sha256', `${type.name} ${selectionName(source)}`),
    find: async (ids, context) => {
      // 12 and "12" are two ids for a custom scalar, and one record.
      const byIdentity = Map.groupBy(ids, (id) => `${type.name}:${id}`);
      const list = {
        fetchPage: pagesOf(source, context),
        fetchIdentities: pagesOf(bare, context),
        ...drains.lookedUp({
          key,
          field: `${adapter.parent}.${adapter.name}`,
          name: adapter.name,
          cause: context.cause,
          fetcher: (asking) => pagesOf(bare, asking),
        }),
      };
      const found = await lookUp(list, [...byIdentity.keys()], context);
      return new Map(
        Array.from(found).flatMap(([each, result]) => {
          if (result === null) return [];
          const finding = findingOf(result);
          return (byIdentity.get(each) ?? []).map((id) => [id, finding] as const);
        }),
      );
    },
  };
}

function findingOf(result: NonNullable<LookedUp<UpstreamRecord>>): Finding {
  if ('error' in result) return asError(result.error);
  return { found: result.record.shapes[0]!, beside: result.beside };
}

/** A list that is null holds nothing. */
function pagesOf(source: PageSource, context: AskingContext): FetchPage<UpstreamRecord> {
  const fetchPage = pageFetcher({ ...source, context });
  return async (request, signal) => {
    try {
      return await fetchPage(request, signal);
    } catch (error) {
      if (error instanceof NullList) return { items: [], hasNextPage: false, endCursor: null };
      throw error;
    }
  };
}

/** As who drains the list without filters gives them: it is one list for both. */
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
