import type { GraphQLFieldResolver } from 'graphql';
import { checkedCount } from '../paging/connection.ts';
import { decodeCursor, encodeCursor } from '../paging/cursor.ts';
import { drain } from '../paging/drain.ts';
import type { UpstreamLink } from './ask-upstream.ts';
import { identitySelection } from './identity-selection.ts';
import { listKey } from './list-key.ts';
import { nullForNullList, pageFetcher } from './page-fetcher.ts';
import type { Adapter } from './plan-adapters.ts';
import { checked } from './read-field.ts';
import { responsePath, selectionsOf } from './response-places.ts';
import type { ServingContext } from './serving-context.ts';
import { valueAt } from './upstream-value.ts';

/** Resolves `all…`: the pages of the list, drained into one. */
export function resolveAll(
  adapter: Adapter,
  link: UpstreamLink,
): GraphQLFieldResolver<unknown, ServingContext> {
  const names = adapter.all!;
  const identity = identitySelection(link.schema, adapter.nodeType);
  return async (_source, args: Record<string, unknown>, context, info) => {
    const { [names.limit]: limit, [names.after]: after, ...filters } = args;
    const key = listKey(adapter.name, filters);
    const records = await drain(
      pageFetcher({
        adapter,
        identity,
        link,
        context,
        info,
        filters,
        selections: [selectionsOf(info.fieldNodes)],
      }),
      {
        limit: typeof limit === 'number' ? checkedCount(names.limit, limit) : undefined,
        position: typeof after === 'string' ? decodeCursor(key, after) : null,
        budget: context.drainBudget,
        signal: context.signal,
        toCursor: (position) => encodeCursor(key, position),
      },
    ).catch(nullForNullList);
    if (!records) return null;
    const path = responsePath(info.path);
    return records.map(({ shapes: [shape] }, index) =>
      checked(
        valueAt(shape!, [...path, index], context.surplusErrors),
        adapter.recordType,
        info.schema,
      ),
    );
  };
}
