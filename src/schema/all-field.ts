import type { GraphQLFieldResolver, GraphQLResolveInfo } from 'graphql';
import { checkedCount } from '../paging/connection/connection-arguments.ts';
import { decodeCursor, encodeCursor } from '../paging/place/cursor.ts';
import { drainPages, type DrainedPage } from '../paging/drain.ts';
import type { UpstreamLink } from './asking/upstream-link.ts';
import type { Drains } from './drains.ts';
import { identitySelection } from './asking/identity-selection.ts';
import { cursorKey, walkKey } from './list-key.ts';
import type { FindNestedList, NestedList } from './nested-list.ts';
import { nullForNullList, pageFetcher, surplusOf } from './asking/page-fetcher.ts';
import { selectionName } from './asking/page-question.ts';
import type { Adapter } from './derivation/adapter.ts';
import { checked } from './read-field.ts';
import type { UpstreamRecord } from './asking/read-page.ts';
import { responsePath } from './asking/response-path.ts';
import { selectionsOf } from './asking/response-places.ts';
import type { ServingContext } from './serving-context.ts';
import type { StreamPart } from './streaming/list-stream.ts';
import type { DrainedRecord } from './streaming/streamed-lists.ts';
import { errorsAt, valueAt } from './asking/upstream-value.ts';

/** Resolves `all…`: the pages of the list, drained into one. */
export function resolveAll(
  adapter: Adapter,
  link: UpstreamLink,
  drains: Drains,
  findList?: FindNestedList,
): GraphQLFieldResolver<unknown, ServingContext> {
  const pagesOf = drainedPages(adapter, link, drains);
  return async (source, args: Record<string, unknown>, context, info) => {
    const values: unknown[] = [];
    const stream = info.path.prev ? undefined : context.streams?.drains.get(String(info.path.key));
    try {
      if (stream) {
        const part = await stream.part(() => pagesOf(args, context, info, { keepsAll: false }));
        return valuesOf(part, 0, adapter, context, info);
      }
      const list = findList?.(source, info);
      for await (const page of pagesOf(args, context, info, { list, keepsAll: true })) {
        values.push(...valuesOf(page, values.length, adapter, context, info));
      }
    } catch (error) {
      context.surplusErrors.push(...errorsAt(responsePath(info.path), surplusOf(error)));
      return nullForNullList(error);
    }
    return values;
  };
}

type PagesOfField = (
  args: Readonly<Record<string, unknown>>,
  context: ServingContext,
  info: GraphQLResolveInfo,
  options: {
    /** Below another object than the root. */
    readonly list?: NestedList | undefined;
    /** All the values are kept until the end. */
    readonly keepsAll: boolean;
  },
) => AsyncGenerator<DrainedPage<UpstreamRecord>, void, undefined>;

/** The pages that a drain gives, for the arguments of an `all…` field. */
export function drainedPages(adapter: Adapter, link: UpstreamLink, drains: Drains): PagesOfField {
  const names = adapter.all!;
  const identity = identitySelection(link.schema, adapter.nodeType);
  return async function* (args, context, info, { list: nested, keepsAll }) {
    const { [names.limit]: given, [names.after]: after, ...filters } = args;
    const { name = adapter.name, walkName = name, ...list } = nested ?? {};
    const key = cursorKey(name, filters);
    const limit = typeof given === 'number' ? checkedCount(names.limit, given) : undefined;
    const position = typeof after === 'string' ? decodeCursor(key, after) : null;
    const { signal, drainBudget: budget } = context;
    const selections = [selectionsOf(info.fieldNodes)];
    const source = { adapter, identity, link, info, filters, selections, ...list };
    const pages = drains.walk(
      {
        key: walkKey(walkName, filters),
        field: `${adapter.parent}.${adapter.name}`,
        fetcher: (asking) => pageFetcher({ ...source, context: asking }),
        selection: nested ? undefined : selectionName(source),
        isNested: nested !== undefined,
        hasFirstPage: nested?.ridden !== undefined,
      },
      { position, limit, context, keepsAll },
    );
    const toCursor = (at: Parameters<typeof encodeCursor>[1]) => encodeCursor(key, at);
    yield* drainPages(pages, { limit, position, budget, signal, toCursor });
  };
}

/**
 * The values that callers see of one page. What belongs to none of them goes to the surplus errors.
 *
 * @param offset how many of the list came before
 */
export function valuesOf(
  { records, beside }: StreamPart<DrainedRecord>,
  offset: number,
  { recordType }: Adapter,
  { surplusErrors }: ServingContext,
  { path, schema }: GraphQLResolveInfo,
): unknown[] {
  const at = responsePath(path);
  surplusErrors.push(...errorsAt(at, beside));
  return records.map(({ record: { shapes } }, index) =>
    checked(valueAt(shapes[0]!, [...at, offset + index], surplusErrors), recordType, schema),
  );
}
