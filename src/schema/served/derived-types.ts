import { astFromArg, astFromType } from '@graphql-tools/utils';
import {
  GraphQLList,
  isNonNullType,
  Kind,
  parse,
  print,
  type DocumentNode,
  type GraphQLSchema,
} from 'graphql';
import type { Adapter } from '../derived.ts';
import { RELAY_PAGE_INFO, type RootNames } from '../names/root-names.ts';

/** The type definitions of all derived fields and types. GraphiQL shows their descriptions as documentation. */
export function derivedTypes(
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
