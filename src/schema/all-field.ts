import type { SubschemaConfig } from '@graphql-tools/delegate';
import { GraphQLError, type GraphQLFieldResolver, type GraphQLSchema } from 'graphql';
import { checkedCount } from '../paging/connection.ts';
import { decodeCursor, encodeCursor } from '../paging/cursor.ts';
import { drain } from '../paging/drain.ts';
import { fetchUpstreamPage } from './fetch-upstream-page.ts';
import { identitySelection } from './identity-selection.ts';
import { listKey } from './list-key.ts';
import type { Adapter } from './plan-adapters.ts';
import { responsePath, selectionsOf } from './response-places.ts';
import type { ServingContext } from './serving-context.ts';
import { recordAt } from './upstream-record.ts';

/** Resolves `all…`: the pages of the list, drained into one. */
export function resolveAll(
  adapter: Adapter,
  subschema: SubschemaConfig,
  upstream: GraphQLSchema,
): GraphQLFieldResolver<unknown, ServingContext> {
  const names = adapter.all!;
  const identity = identitySelection(upstream, adapter.nodeType);
  return async (_source, args: Record<string, unknown>, context, info) => {
    const { [names.limit]: limit, [names.after]: after, ...filters } = args;
    const key = listKey(adapter.name, filters);
    const records = await drain(
      fetchUpstreamPage({
        adapter,
        identity,
        subschema,
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
    );
    const path = responsePath(info.path);
    return records.map(({ shapes: [shape] }, index) =>
      shape
        ? recordAt(shape, [...path, index], adapter.recordType, subschema, context, info)
        : new GraphQLError('A record has no value.'),
    );
  };
}
