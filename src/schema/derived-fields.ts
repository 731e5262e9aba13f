import { astFromArg, astFromType } from '@graphql-tools/utils';
import { GraphQLList, isNonNullType, Kind, print, type GraphQLSchema } from 'graphql';
import {
  objectTypesOf,
  type Adapter,
  type DerivedField,
  type DerivedList,
  type Entity,
} from './derived.ts';

/**
 * All fields that the gateway adds to the service's schema, in the order in which they are documented.
 *
 * @param schema the upstream under served names
 */
export function derivedFields(
  schema: GraphQLSchema,
  adapters: readonly Adapter[],
  entities: readonly Entity[],
): DerivedField[] {
  const parent = schema.getQueryType()!.name;
  const records = entities.filter(({ field }) => field !== undefined);
  return [
    ...adapters.flatMap((adapter) => fieldsOfList(adapter, schema)),
    { kind: 'service', parent, name: '_service', reads: [], sdl: SERVICE },
    ...(entities.length > 0 ? [entitiesField(entities, parent)] : []),
    ...records.map((entity) => recordField(entity, parent)),
  ];
}

function fieldsOfList(adapter: Adapter, schema: GraphQLSchema): DerivedList[] {
  const { all, connection, parent, recordType, name: list, nodeType, identity } = adapter;
  // Cursors contain what identifies a record.
  const types = identity === undefined ? [] : objectTypesOf(schema, nodeType);
  const reads = [
    ...placesOfList(adapter),
    nodeType.name,
    ...types.map((type) => `${type.name}.${identity}`),
  ];
  const filters = filtersOf(adapter, schema);
  const deprecation = deprecationOf(adapter);
  const fields: DerivedList[] = [];
  if (all) {
    const sdl = `
  """
  All records of \`${list}\`, each once and in order. The gateway reads the list page by page and returns it as one list.
  Null with an error if the list cannot be read to its end, or if the operation drains more records than \`DRAIN_MAX_ITEMS\` of
  the gateway in total, 100,000 by default.
  """
  ${all.field}(
    """The largest number of records to return. Default: all."""
    limit: Int
    """Start after this record: ${connection ? `a cursor of \`${connection.field}\`, or ` : ''}the \`resumeAfter\` of an error."""
    after: String
    ${filters}
  ): ${print(astFromType(new GraphQLList(recordType)))}${deprecation}`;
    fields.push({ kind: 'all', parent, name: all.field, adapter, reads, sdl });
  }
  if (connection) {
    const count = adapter.count ? [`${adapter.pageType.name}.${adapter.count}`] : [];
    const sdl = `
  """
  The records of \`${list}\` as a Relay connection: up to \`CONNECTION_MAX\` of the gateway at a time, 500 by default, with
  a cursor on every edge that resumes exactly after it.
  """
  ${connection.field}(
    """The number of edges. Above the page limit of the service, several pages are read. Default: one page."""
    first: Int
    """Start after the edge with this cursor. Default: the start of the list."""
    after: String
    """The number of edges counted back from \`before\`, or from the end of the list. Cannot be combined with \`first\`."""
    last: Int
    """End before the edge with this cursor. Far from the start of the list this costs as much as \`totalCount\`."""
    before: String
    ${filters}
  ): ${connection.type}${deprecation}`;
    const name = connection.field;
    fields.push({ kind: 'connection', parent, name, adapter, reads: [...reads, ...count], sdl });
  }
  return fields;
}

const SERVICE = `
  """For routers: what this subgraph offers to a supergraph."""
  _service: _Service!`;

function entitiesField(entities: readonly Entity[], parent: string): DerivedField {
  const reads = entities.flatMap((entity) => placesOfLookup(entity, parent));
  const sdl = `
  """
  For routers: records by their ids, in the order of the representations; null for a record that does not exist.
  """
  _entities(
    """The \`__typename\` and the \`id\` of each record."""
    representations: [_Any!]!
  ): [_Entity]!`;
  return { kind: 'entities', parent, name: '_entities', entities, reads, sdl };
}

function recordField(entity: Entity, parent: string): DerivedField {
  const { type, idType } = entity;
  const name = entity.field!;
  const sdl = `
  """
  ${describeLookup(entity)}
  """
  ${name}(
    """The id, as the service returns it."""
    id: ${idType.name}!
  ): ${type.name}`;
  return { kind: 'record', parent, name, entity, reads: placesOfLookup(entity, parent), sdl };
}

function describeLookup({ type: { name }, lookup }: Entity): string {
  if (lookup?.kind === 'id') {
    return `The ${name} with this id, which the service returns in \`${lookup.field}\`; null if it does not exist.`;
  }
  return `The ${name} with this id; null if it does not exist. The service has no such field, so the record is looked up
  in \`${lookup!.adapter.name}\`: first at its last known position and near it, then at both ends of the list, then by
  reading the whole list, at most every 30 seconds. A record inserted in the middle of the list by someone else may not be
  found for as long.`;
}

/** The field of a list, and the type and the field of its pages. */
function placesOfList({ parent, name, pageType }: Adapter): string[] {
  return [`${parent}.${name}`, pageType.name, `${pageType.name}.items`];
}

function placesOfLookup({ lookup }: Entity, root: string): string[] {
  if (!lookup) return [];
  return lookup.kind === 'list' ? placesOfList(lookup.adapter) : [`${root}.${lookup.field}`];
}

/** What is derived from a deprecated list is deprecated for the same reason. */
function deprecationOf({ field: { deprecationReason } }: Adapter): string {
  if (deprecationReason === null || deprecationReason === undefined) return '';
  return ` @deprecated(reason: ${print({ kind: Kind.STRING, value: deprecationReason })})`;
}

function filtersOf({ filters }: Adapter, schema: GraphQLSchema): string {
  return filters
    .map((filter) => {
      // Built from the type: after renaming, the argument's own AST node may still have the old name.
      const { description: _, ...definition } = astFromArg(filter, schema);
      const description = filter.description ?? 'A filter of the service.';
      return `${JSON.stringify(description)} ${print(definition)}`;
    })
    .join('\n    ');
}

/** The definitions of all derived fields, and of the types that they need. @param pageInfo the served name of Relay's */
export function derivedSdl(fields: readonly DerivedField[], pageInfo: string): string {
  const connected = fields.flatMap((field) => (field.kind === 'connection' ? [field.adapter] : []));
  const lists = Map.groupBy(connected, ({ connection }) => connection!.type);
  const extended = Map.groupBy(fields, ({ parent }) => parent);
  return [
    ROUTER_TYPES,
    ...(connected.length > 0 ? [pageInfoType(pageInfo)] : []),
    ...Array.from(lists.values(), (adapters) => connectionTypes(adapters, pageInfo)),
    ...fields.flatMap((field) => (field.kind === 'entities' ? entityTypes(field.entities) : [])),
    ...Array.from(
      extended,
      ([parent, all]) => `extend type ${parent} {\n${all.map(({ sdl }) => sdl).join('\n')}\n}`,
    ),
  ].join('\n');
}

const ROUTER_TYPES = `
"""For routers: what this subgraph offers to a supergraph."""
type _Service {
  """The schema as SDL, with the directives of Federation 2."""
  sdl: String!
}`;

const entityTypes = (entities: readonly Entity[]) => `
"""For routers: the \`__typename\` and the \`id\` of a record."""
scalar _Any

"""For routers: the types whose records other subgraphs can refer to."""
union _Entity = ${entities.map(({ type }) => type.name).join(' | ')}`;

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

/** All lists of a node share them: a record may be null if it may be null in one of the lists. */
function connectionTypes(lists: readonly Adapter[], pageInfo: string): string {
  const { connection, nodeType } = lists[0]!;
  const { field, type, edge } = connection!;
  const mayBeNull = lists.some(({ recordType }) => !isNonNullType(recordType));
  const node = mayBeNull ? nodeType.name : `${nodeType.name}!`;
  const orNull = mayBeNull ? ' Null if the service returns null in the list.' : '';
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
  The number of records in the whole list. Unless the service reports it with a page, all pages are read to count them. Such a
  count may be as old as twice \`TOTAL_COUNT_SECONDS\` of the gateway, 10 minutes by default.
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
