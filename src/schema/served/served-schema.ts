import type { SubschemaConfig } from '@graphql-tools/delegate';
import { stitchSchemas } from '@graphql-tools/stitch';
import {
  astFromArg,
  astFromType,
  MapperKind,
  mapSchema,
  type Executor,
} from '@graphql-tools/utils';
import { wrapSchema } from '@graphql-tools/wrap';
import {
  GraphQLList,
  isNonNullType,
  Kind,
  parse,
  print,
  type DocumentNode,
  type GraphQLSchema,
  GraphQLID,
  GraphQLNonNull,
  isInterfaceType,
  visit,
  assertValidSchema,
  getNamedType,
  isObjectType,
} from 'graphql';
import { planAdapters, type AdapterPlan, type ListReport } from '../derivation/adapters.ts';
import { planEntities, type EntityReport, planNodes, withNodes } from '../derivation/entities.ts';
import { findLists } from '../derivation/lists.ts';
import type { Adapter, NodeInterface, Entity, NestedAdapter } from '../derived.ts';
import { INCREMENTAL } from '../incremental-directives.ts';
import { RELAY_PAGE_INFO, type RootNames, rootNames, servedNames } from '../names.ts';
import { readSnapshot } from '../snapshot.ts';
import { entityTypes, subgraphSdl, type FederationVersion } from './subgraph-sdl.ts';

/** The type definitions of all derived fields and types. GraphiQL shows their descriptions as documentation. */
function derivedTypes(
  adapters: readonly Adapter[],
  schema: GraphQLSchema,
  names: RootNames,
  limits: { drainMaxItems: number; connectionMax: number },
): DocumentNode {
  const pageInfo = names.type(RELAY_PAGE_INFO);
  const counted = new Set(
    adapters.flatMap(({ connection, count }) => (count === undefined ? [] : connection?.type)),
  );
  const connections = new Map(
    adapters.flatMap((adapter) => {
      const { connection } = adapter;
      if (!connection) return [];
      const isCounted = counted.has(connection.type);
      return [[connection.type, connectionTypes(adapter, pageInfo, isCounted)]];
    }),
  );
  const fields = Map.groupBy(adapters, ({ parent }) => parent);
  const definitions = [
    ...(connections.size > 0 ? [pageInfoType(pageInfo)] : []),
    ...connections.values(),
    ...[...fields].flatMap(([parent, lists]) => {
      const derived = lists.flatMap((adapter) => [
        ...(adapter.all ? [allField(adapter, schema, limits.drainMaxItems)] : []),
        ...(adapter.connection ? [connectionField(adapter, schema, limits.connectionMax)] : []),
      ]);
      return derived.length > 0 ? [`extend type ${parent} {\n${derived.join('\n')}\n}`] : [];
    }),
  ];
  return { kind: Kind.DOCUMENT, definitions: definitions.flatMap((sdl) => parse(sdl).definitions) };
}

const pageInfoType = (name: string) => `
"""The first and last cursor of the returned edges, and whether the list has more records on either side."""
type ${name} {
  """Whether records follow the last edge."""
  hasNextPage: Boolean!
  """Whether records precede the first edge. Always true if \`after\` is given."""
  hasPreviousPage: Boolean!
  """The cursor of the first edge; null without edges."""
  startCursor: String
  """The cursor of the last edge; null without edges. Pass it as \`after\` to continue."""
  endCursor: String
}`;

function allField(adapter: Adapter, schema: GraphQLSchema, max: number) {
  const { name, all, connection, filters, recordType } = adapter;
  const { field, limit, after } = all!;
  const list = print(astFromType(new GraphQLList(recordType)));
  return `
  """
  All records of \`${name}\`, each once and in order. The gateway reads the list page by page and returns it as one list.
  Null with an error if the list cannot be read to its end. One operation drains at most ${max} records in total.${costOf(adapter)}
  """
  ${field}(
    """The largest number of records to return. Default: all."""
    ${limit}: Int
    """Start after this record: ${connection ? `a cursor of \`${connection.field}\`, or ` : ''}the \`resumeAfter\` of an error."""
    ${after}: String
    ${carriedOver(filters, schema)}
  ): ${list}`;
}

function connectionField(adapter: Adapter, schema: GraphQLSchema, max: number) {
  const { name, connection, filters } = adapter;
  const { field, type, after, last, before } = connection!;
  return `
  """
  The records of \`${name}\` as a Relay connection: up to ${max} at a time, with a cursor on every edge that resumes
  exactly after it.${costOf(adapter)}
  """
  ${field}(
    """The number of edges, 0 to ${max}. Above the page limit of the service, several pages are read. Default: one page."""
    first: Int
    """Start after the edge with this cursor. Default: the start of the list."""
    ${after}: String
    """The number of edges counted back from \`${before}\`, or from the end of the list. Cannot be combined with \`first\`."""
    ${last}: Int
    """End before the edge with this cursor. Far from the start of the list this costs as much as \`totalCount\`."""
    ${before}: String
    ${carriedOver(filters, schema)}
  ): ${type}`;
}

function costOf(adapter: Adapter): string {
  return 'reach' in adapter
    ? `\n  The first page is fetched together with its ${adapter.parent}; each further page costs one request.`
    : '';
}

/** @param isCounted whether the service counts the records of one of its lists */
function connectionTypes(
  { connection, nodeType, recordType }: Adapter,
  pageInfo: string,
  isCounted: boolean,
): string {
  const { field, type, edge } = connection!;
  const node = print(astFromType(recordType));
  const orNull = isNonNullType(recordType) ? '' : ' Null if the service returns null in the list.';
  return `
"""A part of a list of ${nodeType.name}, with a cursor on every record."""
type ${type} {
  """The records, each with its cursor."""
  edges: [${edge}!]!
  """The records without their cursors.${orNull}"""
  nodes: [${node}]!
  """The first and last cursor of this part, and whether the list has more records."""
  pageInfo: ${pageInfo}!
  """
  The number of records in the whole list. ${isCounted ? COUNTED : NOT_COUNTED} The
  count is reused for 5 seconds.
  """
  totalCount: Int
}

"""One record of a list of ${nodeType.name} with its cursor, for example in \`${field}\`."""
type ${edge} {
  """An opaque text. Passed as \`after\`, it resumes exactly after this record. It remains valid across restarts."""
  cursor: String!
  """The record.${orNull}"""
  node: ${node}
}`;
}

const NOT_COUNTED = 'The service does not report it, so all pages are read to count them.';
const COUNTED =
  'Where the service reports it with a page, that is one small request; otherwise all pages are read to count them.';

function carriedOver(filters: Adapter['filters'], schema: GraphQLSchema): string {
  return filters
    .map((filter) => {
      // Built from the type: after renaming, the argument's own AST node may still have the old name.
      const { description: _, ...definition } = astFromArg(filter, schema);
      const description = filter.description ?? 'A filter of the service.';
      return `${JSON.stringify(description)} ${print(definition)}`;
    })
    .join('\n    ');
}

/** The type definitions of Relay's Node, and of the service's own ids. `withGlobalIds` has to follow. */
function nodeTypes(
  { type, field, list, recordId, ids, implementedBy }: NodeInterface,
  schema: GraphQLSchema,
): DocumentNode {
  const fields = Array.from(ids, ([name, own]) => {
    const kind = isInterfaceType(schema.getType(name)) ? 'interface' : 'type';
    return `
extend ${kind} ${name} ${implementedBy.has(name) ? `implements ${type} ` : ''}{
  """The id in the service. Arguments of the service take this id, and not the global \`id\`."""
  ${recordId}: ${String(own)}
}`;
  });
  const document = parse(`
"""A record that can be fetched again by its \`id\`, whatever its type is."""
interface ${type} {
  """${GLOBAL_ID}"""
  id: ID!
}

extend type ${schema.getQueryType()!.name} {
  """The record with this global id; null if it does not exist."""
  ${field}(
    """The \`id\` of a record."""
    id: ID!
  ): ${type}
  """The records with these global ids, in their order; null for a record that does not exist."""
  ${list}(
    """The \`id\` of each record."""
    ids: [ID!]!
  ): [${type}]!
}
${fields.join('\n')}`);
  // Stitching needs the list, which the parser of graphql 17 leaves out if it is empty.
  return visit(document, { InterfaceTypeDefinition: (node) => ({ ...node, interfaces: [] }) });
}

const GLOBAL_ID = 'An opaque id that is unique among the records of all types.';

/** Gives the `id` of these types the type and the meaning of a global id. */
function withGlobalIds(schema: GraphQLSchema, { ids }: NodeInterface): GraphQLSchema {
  return mapSchema(schema, {
    [MapperKind.COMPOSITE_FIELD]: (field, name, typeName) => {
      const own = name === 'id' ? ids.get(typeName) : undefined;
      if (!own) return field;
      const type = isNonNullType(own) ? new GraphQLNonNull(GraphQLID) : GraphQLID;
      return { ...field, type, description: GLOBAL_ID };
    },
  });
}

export interface ServedSchema {
  readonly schema: GraphQLSchema;
  /**
   * The upstream's schema under served names, without anything derived. Where graphql-js executes an operation over it,
   * the service answers each root field, through the executor.
   */
  readonly upstream: GraphQLSchema;
  /** The upstream's schema, unchanged. */
  readonly snapshot: GraphQLSchema;
  /** Puts a document back into the upstream's names. */
  readonly toUpstream: (document: DocumentNode) => DocumentNode;
  /** The upstream's name of a served type. */
  readonly upstreamType: (servedType: string) => string;
  /** The served name of one of the upstream's mutations. */
  readonly servedMutation: (field: string) => string;
  /** The adapters of the query root. */
  readonly adapters: readonly Adapter[];
  readonly nested: readonly NestedAdapter[];
  /** The types whose records other subgraphs can refer to. */
  readonly entities: readonly Entity[];
  /** Undefined: ids are those of the service. */
  readonly nodes: NodeInterface | undefined;
  /** What was derived from every list and every type with an id, and why. */
  readonly reports: readonly (ListReport | EntityReport)[];
  /** What the operator should know, for the log at the start. */
  readonly warnings: readonly string[];
  /** The SDL from which a supergraph is composed. @param offered default: `schema` */
  readonly subgraphSdl: (offered?: GraphQLSchema) => string;
}

/** The mutations that callers may use: none, all, or these fields of the upstream. */
export type AllowedMutations = 'off' | 'all' | readonly string[];

export interface ServedSchemaParts {
  /** The upstream's schema, unchanged. */
  snapshot: GraphQLSchema;
  /** Sends requests to the service. Undefined: no operation is ever executed over the schema. */
  executor?: Executor | undefined;
  /** Used only for warnings. */
  mutations: AllowedMutations;
  /** The largest `first` of a connection. Used only in descriptions. */
  connectionMax: number;
  /** The number of records that one operation may drain. Used only in descriptions. */
  drainMaxItems: number;
  /** The parsed adapters.json; undefined without one. */
  overrides?: unknown;
  /** Put before all names that could clash in a supergraph. Default: nothing. */
  prefix?: string | undefined;
  /** Whether records have global ids, by which they can be fetched. Default: false. */
  nodeInterface?: boolean;
  /** Used only for the SDL from which a supergraph is composed. Default: 2.3. */
  federationVersion?: FederationVersion | undefined;
}

/**
 * Creates the schema that callers see: the upstream's schema under its served names (`names`), with the fields and
 * types that are derived from its lists and records (decided in `derivation`, written as SDL in the other files of this folder).
 *
 * No resolver runs on it: an operation is compiled (`plans`) and answered as bytes.
 */
export function createServedSchema(parts: ServedSchemaParts): ServedSchema {
  const { snapshot, mutations } = parts;
  const names = rootNames(snapshot, parts.prefix ?? '');
  const wrap = (servesConnections: boolean) => {
    const { transforms, ...served } = servedNames(snapshot, names, servesConnections);
    const subschema: SubschemaConfig = { schema: snapshot, transforms, executor: neverExecuted };
    const upstream = wrapSchema({ ...subschema, executor: parts.executor ?? neverExecuted });
    return { ...served, subschema, upstream, plan: planAdapters(upstream, names, parts.overrides) };
  };
  // The second plan has no connections either: no name that differs between the two decides what is derived.
  const withConnections = hasPagedField(snapshot) ? wrap(true) : undefined;
  const { plan, subschema, upstream, toUpstream, upstreamName } =
    withConnections && hasConnections(withConnections.plan) ? withConnections : wrap(false);
  const { adapters, nested } = plan;
  const root = snapshot.getQueryType()!.name;
  const found = planEntities(upstream, { adapters, names, overrides: plan.types });
  const { entities } = found;
  const { nodes, warnings } = parts.nodeInterface
    ? planNodes(upstream, { adapters, entities, names })
    : NO_NODES;
  const stitched = stitchSchemas({
    subschemas: [subschema],
    typeDefs: [
      rootsOf(snapshot),
      derivedTypes([...adapters, ...nested], upstream, names, parts),
      entityTypes(entities, root, nodes),
      ...(nodes ? [nodeTypes(nodes, upstream)] : []),
      ...(adapters.length + nested.length > 0 ? [INCREMENTAL] : []),
    ],
    assumeValidSDL: true,
  });
  const schema = nodes ? withGlobalIds(stitched, nodes) : stitched;
  schema.description = snapshot.description;
  assertValidSchema(schema);
  const sdlOf = (offered: GraphQLSchema) =>
    subgraphSdl(offered, {
      entities,
      nodes,
      adapters: [...adapters, ...nested],
      pageInfo: names.type(RELAY_PAGE_INFO),
      version: parts.federationVersion ?? '2.3',
    });
  const ownSdl = once(() => sdlOf(schema));
  return {
    schema,
    upstream,
    snapshot,
    toUpstream,
    upstreamType: (name) => upstreamName(name) ?? name,
    servedMutation: (field) => names.field('Mutation', field),
    adapters,
    nested,
    entities,
    nodes,
    subgraphSdl: (offered) => (offered ? sdlOf(offered) : ownSdl()),
    reports: [...plan.reports, ...(nodes ? withNodes(found.reports, nodes) : found.reports)],
    warnings: [
      ...plan.warnings,
      ...found.warnings,
      ...warnings,
      ...startWarnings(snapshot, upstream, mutations),
    ],
  };
}

/**
 * Over the served schema nothing reaches the service: there, graphql-js would answer a caller without its budgets, and
 * leave out what is derived.
 */
function neverExecuted(): never {
  throw new Error('Operations of this schema are answered by their plans, not by its resolvers.');
}

const NO_NODES = { nodes: undefined, warnings: [] };

function hasPagedField(snapshot: GraphQLSchema): boolean {
  return findLists(snapshot).some(({ givesPages }) => givesPages);
}

function hasConnections({ adapters, nested }: AdapterPlan): boolean {
  return [...adapters, ...nested].some(({ connection }) => connection !== undefined);
}

/** Without these, stitching would rename the root types to `Query` and `Mutation`. */
function rootsOf(schema: GraphQLSchema): DocumentNode {
  const mutation = schema.getMutationType();
  return parse(
    `schema { query: ${schema.getQueryType()!.name} ${mutation ? `mutation: ${mutation.name}` : ''} }`,
  );
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

function startWarnings(
  snapshot: GraphQLSchema,
  upstream: GraphQLSchema,
  mutations: AllowedMutations,
): string[] {
  return [...unknownMutations(snapshot, mutations), ...pathsToRoot(upstream)];
}

function unknownMutations(snapshot: GraphQLSchema, allowed: AllowedMutations): string[] {
  if (typeof allowed === 'string') return [];
  const known = snapshot.getMutationType()?.getFields() ?? {};
  return allowed
    .filter((name) => !known[name])
    .map(
      (name) =>
        `MUTATIONS contains ${name}, but the schema has no such mutation. Correct MUTATIONS, or update the schema snapshot.`,
    );
}

const SHOWN = 3;

/** A derived field below such a path would be sent to the upstream, which does not have it. */
function pathsToRoot(upstream: GraphQLSchema): string[] {
  const root = upstream.getQueryType();
  const paths = Object.values(upstream.getTypeMap())
    .filter((type) => isObjectType(type) || isInterfaceType(type))
    .flatMap((type) =>
      Object.values(type.getFields())
        .filter((field) => getNamedType(field.type) === root)
        .map((field) => `${type.name}.${field.name}`),
    );
  if (paths.length === 0) return [];
  const more = paths.length > SHOWN ? ` and ${paths.length - SHOWN} more` : '';
  return [
    `Derived fields work only at the root of an operation, not below ${paths.slice(0, SHOWN).join(', ')}${more}. ` +
      'Request them at the root.',
  ];
}

/** The settings on which the served schema depends. */
export interface SnapshotSettings extends Required<
  Pick<
    ServedSchemaParts,
    'mutations' | 'connectionMax' | 'drainMaxItems' | 'nodeInterface' | 'federationVersion'
  >
> {
  /** The file of the snapshot, for messages. */
  readonly schemaPath: string;
  readonly schemaPrefix: ServedSchemaParts['prefix'];
}

/**
 * Creates the schema that callers see for a snapshot. Nothing changes it afterwards.
 *
 * @param sdl the upstream's schema
 * @param overrides the parsed adapters.json; undefined without one
 * @param executor sends requests to the service; undefined: no operation is ever executed over the schema
 * @throws OperatorMistake
 */
export function serveSnapshot(
  sdl: string,
  { schemaPath, schemaPrefix, ...settings }: SnapshotSettings,
  overrides: unknown,
  executor?: ServedSchemaParts['executor'],
): ServedSchema {
  return createServedSchema({
    ...settings,
    snapshot: readSnapshot(sdl, schemaPath),
    overrides,
    executor,
    prefix: schemaPrefix,
  });
}
