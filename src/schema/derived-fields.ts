import { astFromArg, astFromType } from '@graphql-tools/utils';
import {
  getNullableType,
  GraphQLList,
  isNonNullType,
  Kind,
  print,
  type GraphQLSchema,
} from 'graphql';
import {
  objectTypesOf,
  type Adapter,
  type DerivedField,
  type DerivedList,
  type Entity,
} from './derived.ts';

interface DerivedParts {
  /** The name of the query root. */
  readonly root: string;
  /** Of the root and of nested lists. */
  readonly adapters: readonly Adapter[];
  readonly entities: readonly Entity[];
}

/** All fields that the gateway adds to the service's schema, in the order in which they are documented. */
export function derivedFields({ root, adapters, entities }: DerivedParts): DerivedField[] {
  return [
    ...adapters.flatMap(fieldsOfList),
    { kind: 'service', parent: root, name: '_service' },
    ...(entities.length > 0
      ? [{ kind: 'entities', parent: root, name: '_entities', entities } as const]
      : []),
    ...entities.flatMap((entity) =>
      entity.field === undefined
        ? []
        : [{ kind: 'record', parent: root, name: entity.field, entity } as const],
    ),
  ];
}

/** The fields that are derived from one list. */
export function fieldsOfList(adapter: Adapter): DerivedList[] {
  return (['all', 'connection'] as const).flatMap((kind) => {
    const name = adapter[kind]?.field;
    return name === undefined ? [] : [{ kind, parent: adapter.parent, name, adapter }];
  });
}

/** What the definitions of derived fields depend on. */
interface SdlParts {
  /** The upstream under served names. */
  readonly schema: GraphQLSchema;
  /** The served name of Relay's `PageInfo`. */
  readonly pageInfo: string;
}

/** The definitions of all derived fields, and of the types that they need, with documentation for GraphiQL. */
export function derivedSdl(fields: readonly DerivedField[], parts: SdlParts): string {
  const { pageInfo } = parts;
  const connected = fields.flatMap((field) => (field.kind === 'connection' ? [field.adapter] : []));
  const lists = Map.groupBy(connected, ({ connection }) => connection!.type);
  const extended = Map.groupBy(fields, ({ parent }) => parent);
  return [
    ...(connected.length > 0 ? [pageInfoType(pageInfo)] : []),
    ...Array.from(lists.values(), (adapters) => connectionTypes(adapters, pageInfo)),
    ...fields.flatMap(routerTypes),
    ...Array.from(extended, ([parent, all]) => {
      const definitions = all.map((field) => definitionOf(field, parts.schema));
      return `extend type ${parent} {\n${definitions.join('\n')}\n}`;
    }),
  ].join('\n');
}

function definitionOf(field: DerivedField, schema: GraphQLSchema): string {
  const { name } = field;
  switch (field.kind) {
    case 'all': {
      const { connection, recordType, name: list } = field.adapter;
      return `
  """
  All records of \`${list}\`, each once and in order. The gateway reads the list page by page and returns it as one list.
  Null with an error if the list cannot be read to its end, or if the operation drains more records than \`DRAIN_MAX_ITEMS\` of
  the gateway in total, 100,000 by default.
  """
  ${name}(
    """The largest number of records to return. Default: all."""
    limit: Int
    """Start after this record: ${connection ? `a cursor of \`${connection.field}\`, or ` : ''}the \`resumeAfter\` of an error."""
    after: String
    ${filtersOf(field.adapter, schema)}
  ): ${print(astFromType(new GraphQLList(recordType)))}${deprecationOf(field.adapter)}`;
    }
    case 'connection':
      return `
  """
  The records of \`${field.adapter.name}\` as a Relay connection: up to \`CONNECTION_MAX\` of the gateway at a time, 500 by default, with
  a cursor on every edge that resumes exactly after it.
  """
  ${name}(
    """The number of edges. Above the page limit of the service, several pages are read. Default: one page."""
    first: Int
    """Start after the edge with this cursor. Default: the start of the list."""
    after: String
    """The number of edges counted back from \`before\`, or from the end of the list. Cannot be combined with \`first\`."""
    last: Int
    """End before the edge with this cursor. Far from the start of the list this costs as much as \`totalCount\`."""
    before: String
    ${filtersOf(field.adapter, schema)}
  ): ${field.adapter.connection!.type}${deprecationOf(field.adapter)}`;
    case 'service':
      return `
  """For routers: what this subgraph offers to a supergraph."""
  ${name}: _Service!`;
    case 'entities':
      return `
  """
  For routers: records by their ids, in the order of the representations; null for a record that does not exist.
  """
  ${name}(
    """The \`__typename\` and the \`id\` of each record."""
    representations: [_Any!]!
  ): [_Entity]!`;
    case 'record': {
      const { type, idType, lookup } = field.entity;
      const serviceId = lookup?.kind === 'id' ? getNullableType(lookup.argument.type) : idType;
      return `
  """
  ${describeLookup(field.entity)}
  """
  ${name}(
    """The id, as the service returns it."""
    id: ${String(serviceId)}!
  ): ${type.name}`;
    }
  }
}

function routerTypes(field: DerivedField): string[] {
  if (field.kind === 'service') {
    return [
      `
"""For routers: what this subgraph offers to a supergraph."""
type _Service {
  """The schema as SDL, with the directives of Federation 2."""
  sdl: String!
}`,
    ];
  }
  if (field.kind !== 'entities') return [];
  return [
    `
"""For routers: the \`__typename\` and the \`id\` of a record."""
scalar _Any

"""For routers: the types whose records other subgraphs can refer to."""
union _Entity = ${field.entities.map(({ type }) => type.name).join(' | ')}`,
  ];
}

/** The types and fields of the service that a derived field reads, whatever is selected of it. */
export function placesReadBy(field: DerivedField, schema: GraphQLSchema): readonly string[] {
  switch (field.kind) {
    case 'all':
    case 'connection': {
      const { adapter } = field;
      const counted = field.kind === 'connection' && adapter.count;
      return [
        ...placesOfList(adapter),
        ...placesOfRecords(adapter, schema),
        ...(counted ? [`${adapter.pageType.name}.${counted}`] : []),
      ];
    }
    case 'record':
      return placesOfLookup(field.entity, field.parent);
    case 'entities':
      return field.entities.flatMap((entity) => placesOfLookup(entity, field.parent));
    case 'service':
      return [];
  }
}

/** The field of a list, and the type and the field of its pages. */
function placesOfList({ parent, name, pageType }: Adapter): string[] {
  return [`${parent}.${name}`, pageType.name, `${pageType.name}.items`];
}

/** What is always read of the records of a list: cursors contain what identifies a record. */
function placesOfRecords({ nodeType, identity }: Adapter, schema: GraphQLSchema): string[] {
  const types = identity === undefined ? [] : objectTypesOf(schema, nodeType);
  return [nodeType.name, ...types.map(({ name }) => `${name}.${identity}`)];
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

function describeLookup({ type: { name }, lookup }: Entity): string {
  if (lookup?.kind === 'id') {
    return `The ${name} with this id, which the service returns in \`${lookup.field}\`; null if it does not exist.`;
  }
  return `The ${name} with this id; null if it does not exist. The service has no such field, so the record is looked up
  in \`${lookup!.adapter.name}\`: first at its last known position and near it, then at both ends of the list, then by
  reading the whole list, at most every 30 seconds. A record inserted in the middle of the list by someone else may not be
  found for as long.`;
}
