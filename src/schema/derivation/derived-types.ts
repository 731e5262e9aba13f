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
import type { Adapter } from './adapter.ts';
import { RELAY_PAGE_INFO, type RootNames } from './root-names.ts';

/** The type definitions of everything derived. Their descriptions are the documentation that GraphiQL shows. */
export function derivedTypes(
  adapters: readonly Adapter[],
  schema: GraphQLSchema,
  names: RootNames,
  limits: { drainMaxItems: number; connectionMax: number },
): DocumentNode {
  const pageInfo = names.type(RELAY_PAGE_INFO);
  const connections = new Map(
    adapters.flatMap((adapter) =>
      adapter.connection ? [[adapter.connection.type, connectionTypes(adapter, pageInfo)]] : [],
    ),
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
"""Where a stretch of a connection begins and ends, and whether there is more on either side."""
type ${name} {
  """Whether records follow after the last edge."""
  hasNextPage: Boolean!
  """Whether records come before the first edge. True whenever \`after\` was given."""
  hasPreviousPage: Boolean!
  """The cursor of the first edge; null when there are no edges."""
  startCursor: String
  """The cursor of the last edge: pass it as \`after\` to go on. Null when there are no edges."""
  endCursor: String
}`;

function allField(adapter: Adapter, schema: GraphQLSchema, max: number) {
  const { name, all, connection, filters, recordType } = adapter;
  const { field, limit, after } = all!;
  const list = print(astFromType(new GraphQLList(recordType)));
  return `
  """
  All records of \`${name}\`, read page by page on the server and given as one list, each once and in order.
  Null with an error when the list cannot be read to its end. One operation drains at most ${max} records in all.${costOf(adapter)}
  """
  ${field}(
    """At most this many records. Left out: all."""
    ${limit}: Int
    """Begin behind this record: a cursor of \`${connection?.field ?? `${name}Connection`}\`, or the \`resumeAfter\` of an error."""
    ${after}: String
    ${carriedOver(filters, schema)}
  ): ${list}`;
}

function connectionField(adapter: Adapter, schema: GraphQLSchema, max: number) {
  const { name, connection, filters } = adapter;
  const { field, type, last, before } = connection!;
  return `
  """
  The records of \`${name}\` as a Relay connection: any number at a time, and a cursor on every edge that
  resumes exactly behind it.${costOf(adapter)}
  """
  ${field}(
    """How many edges, 0 to ${max}; above the page limit of the service, several pages are read. Left out: one page."""
    first: Int
    """Begin behind the edge with this cursor. Left out: at the start."""
    after: String
    """How many edges from the end of the list, or from \`${before}\`; not together with \`first\`."""
    ${last}: Int
    """End in front of the edge with this cursor. Far from the start of the list this costs what \`totalCount\` costs."""
    ${before}: String
    ${carriedOver(filters, schema)}
  ): ${type}`;
}

function costOf(adapter: Adapter): string {
  return 'reach' in adapter
    ? `\n  The first page comes along with its ${adapter.parent}; each further one costs a request.`
    : '';
}

function connectionTypes({ connection, nodeType, recordType }: Adapter, pageInfo: string): string {
  const { field, type, edge } = connection!;
  const node = print(astFromType(recordType));
  const orNull = isNonNullType(recordType) ? '' : ' Null where the service gives null in the list.';
  return `
"""A stretch of a list of ${nodeType.name}, with a cursor on every record."""
type ${type} {
  """The records, each with its cursor."""
  edges: [${edge}!]!
  """The records alone, for those who need no cursors.${orNull}"""
  nodes: [${node}]!
  """Where this stretch begins and ends, and whether there is more."""
  pageInfo: ${pageInfo}!
  """
  How many records the whole list has, whatever the stretch. The service does not tell, so that all its pages
  are read for it; what was counted less than 5 seconds ago is given again.
  """
  totalCount: Int
}

"""One record of a list of ${nodeType.name}, and where it stands, for example in \`${field}\`."""
type ${edge} {
  """Opaque. As \`after\`, it resumes exactly behind this record. It stays good over restarts."""
  cursor: String!
  """The record itself.${orNull}"""
  node: ${node}
}`;
}

function carriedOver(filters: Adapter['filters'], schema: GraphQLSchema): string {
  return filters
    .map((filter) => {
      // Built anew from the type: after renaming, the argument's own node can hold the old name.
      const { description: _, ...definition } = astFromArg(filter, schema);
      const description = filter.description ?? 'As the service has it.';
      return `${JSON.stringify(description)} ${print(definition)}`;
    })
    .join('\n    ');
}
