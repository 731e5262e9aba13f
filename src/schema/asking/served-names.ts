import type { DelegationContext } from '@graphql-tools/delegate';
import type { ExecutionResult } from '@graphql-tools/utils';
import { RenameRootTypes, RenameTypes } from '@graphql-tools/wrap';
import type { DocumentNode, GraphQLSchema } from 'graphql';
import { RELAY_PAGE_INFO } from '../derivation/plan-adapters.ts';

/** A document in served names, put back into the upstream's. */
export type RequestTransform = (document: DocumentNode) => DocumentNode;
/** An answer in the upstream's names, put into served ones. */
export type ResultTransform = (result: ExecutionResult) => ExecutionResult;

/**
 * The name `PageInfo` is Relay's, and shared across a supergraph; an upstream type of that name gives way.
 * Stitching calls the roots `Query` and `Mutation`, whatever they were called before.
 */
export function servedNames(snapshot: GraphQLSchema) {
  const operations = [
    ['Query', snapshot.getQueryType()],
    ['Mutation', snapshot.getMutationType()],
    ['Subscription', snapshot.getSubscriptionType()],
  ] as const;
  const roots = new Map(
    operations.flatMap(([name, root]) => (root && root.name !== name ? [[root.name, name]] : [])),
  );
  // Whoever is only called like a root would be taken for one.
  const givingWay = new Map(
    [
      RELAY_PAGE_INFO,
      ...operations.flatMap(([name, root]) => (root?.name === name ? [] : [name])),
    ].map((name) => [name, freeName(`Upstream${name}`, snapshot)]),
  );
  const names = new RenameTypes((name) => givingWay.get(name) ?? name);
  const rootNames = new RenameRootTypes((name) => roots.get(name) ?? name);
  const transforms = roots.size > 0 ? [names, rootNames] : [names];
  const toUpstream: RequestTransform = (document) =>
    transforms.reduceRight(
      (request, transform) => transform.transformRequest(request, NO_CONTEXT, {}),
      { document },
    ).document;
  const servedName = (name: string) => {
    const free = givingWay.get(name) ?? name;
    return roots.get(free) ?? free;
  };
  const fromUpstream: ResultTransform = ({ data, ...rest }) => ({
    ...rest,
    data: withTypenames(data, servedName) as ExecutionResult['data'],
  });
  return { transforms, toUpstream, fromUpstream };
}

/**
 * A copy of what has to be renamed: the answer is shared with others, and the library's own transforms would
 * change it in place. The rest, which is nearly always all of it, stays as it is.
 */
function withTypenames(value: unknown, servedName: (name: string) => string): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => withTypenames(item, servedName));
    return items.some((item, place) => item !== value[place]) ? items : value;
  }
  let copy: Record<string, unknown> | undefined;
  for (const [key, inner] of Object.entries(value)) {
    const isTypename = key === '__typename' && typeof inner === 'string';
    const renamed = isTypename ? servedName(inner) : withTypenames(inner, servedName);
    if (renamed !== inner) (copy ??= { ...value })[key] = renamed;
  }
  return copy ?? value;
}

/** Renaming looks at nothing but the document. */
const NO_CONTEXT = {} as DelegationContext;

function freeName(name: string, snapshot: GraphQLSchema): string {
  let free = name;
  while (snapshot.getType(free)) free += '_';
  return free;
}
