import type { DelegationContext, Transform } from '@graphql-tools/delegate';
import type { ExecutionRequest } from '@graphql-tools/utils';
import {
  FilterRootFields,
  FilterTypes,
  RenameRootFields,
  RenameRootTypes,
  RenameTypes,
} from '@graphql-tools/wrap';
import type { DocumentNode, GraphQLSchema } from 'graphql';
import { RELAY_PAGE_INFO, type RootNames } from '../derivation/root-names.ts';

/** A document in served names, put back into the upstream's. */
export type RequestTransform = (document: DocumentNode) => DocumentNode;

/**
 * The name `PageInfo` is Relay's, and shared across a supergraph; an upstream type of that name gives way.
 * Stitching calls the roots `Query` and `Mutation`, whatever they were called before. A prefix is put before
 * all types but the roots, and before their fields.
 */
export function servedNames(snapshot: GraphQLSchema, names: RootNames) {
  const operations = [
    ['Query', snapshot.getQueryType()],
    ['Mutation', snapshot.getMutationType()],
    ['Subscription', snapshot.getSubscriptionType()],
  ] as const;
  const roots = new Map<string, string>(
    operations.flatMap(([name, root]) => (root ? [[root.name, name]] : [])),
  );
  // Whoever is only called like a root would be taken for one.
  const givingWay = new Map(
    [
      RELAY_PAGE_INFO,
      ...operations.flatMap(([name, root]) => (root?.name === name ? [] : [name])),
    ].map((name) => [name, freeName(`Upstream${name}`, snapshot)]),
  );
  const typeName = (name: string) =>
    roots.has(name) ? name : names.type(givingWay.get(name) ?? name);
  const hasPrefix = names.type('') !== '';
  const transforms: Transform[] = [
    // Of a service that is a subgraph itself: ours are others.
    ...(Object.keys(snapshot.getTypeMap()).some(isOfFederation)
      ? [
          new FilterRootFields((_, name) => !isOfFederation(name ?? '')),
          new FilterTypes(({ name }) => !isOfFederation(name)),
        ]
      : []),
    new RenameTypes(typeName, { renameBuiltins: false, renameScalars: true }),
    ...([...roots].some(([name, root]) => name !== root)
      ? [new RenameRootTypes((name) => roots.get(name) ?? name)]
      : []),
    ...(hasPrefix ? [new RenameRootFields(names.field)] : []),
  ];
  const toUpstream: RequestTransform = (document) =>
    transforms.reduceRight(
      (request, transform) => transform.transformRequest?.(request, NO_CONTEXT, {}) ?? request,
      { document } as ExecutionRequest,
    ).document;
  const servedName = (name: string) => {
    const renamed = roots.get(name);
    return renamed ?? (isBuiltIn(name) ? name : typeName(name));
  };
  const upstreamNames = new Map(
    Object.keys(snapshot.getTypeMap()).map((name) => [servedName(name), name]),
  );
  const upstreamType = (name: string) => upstreamNames.get(name) ?? name;
  return { transforms, toUpstream, upstreamType };
}

function isOfFederation(name: string): boolean {
  return /^_(Any|Entity|Service|entities|service)$/.test(name);
}

/** Introspection types of an answer of the upstream, which nobody asks it. */
function isBuiltIn(name: string): boolean {
  return name.startsWith('__');
}

/** Renaming looks at nothing but the document. */
const NO_CONTEXT = {} as DelegationContext;

function freeName(name: string, snapshot: GraphQLSchema): string {
  let free = name;
  while (snapshot.getType(free)) free += '_';
  return free;
}
