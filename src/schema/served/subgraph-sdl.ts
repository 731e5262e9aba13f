import {
  isInputObjectType,
  Kind,
  lexicographicSortSchema,
  parse,
  print,
  printSchema,
  visit,
  type ConstDirectiveNode,
  type DocumentNode,
  type GraphQLSchema,
} from 'graphql';
import { WALK_AGAIN_AFTER_MS } from '../../paging/lookup/lookup-walks.ts';
import type { Entity } from '../derived.ts';
import { isRouterField, ROUTER_TYPES } from '../names/served-names.ts';

/**
 * The type definitions that make the schema a Federation 2 subgraph, and the fields that return one record by its id.
 *
 * @param root the name of the query root
 */
export function entityTypes(entities: readonly Entity[], root: string): DocumentNode {
  const fields = entities.map(recordField);
  const names = entities.map(({ type }) => type.name);
  return parse(`
"""For routers: what this subgraph offers to a supergraph."""
type _Service {
  """The schema as SDL, with the directives of Federation 2."""
  sdl: String!
}

${
  names.length > 0
    ? `"""For routers: the \`__typename\` and the \`id\` of a record."""
scalar _Any

"""For routers: the types whose records other subgraphs can refer to."""
union _Entity = ${names.join(' | ')}`
    : ''
}

extend type ${root} {
  """For routers: what this subgraph offers to a supergraph."""
  _service: _Service!
  ${
    names.length > 0
      ? `"""
  For routers: records by their ids, in the order of the representations; null for a record that does not exist.
  """
  _entities(
    """The \`__typename\` and the \`id\` of each record."""
    representations: [_Any!]!
  ): [_Entity]!`
      : ''
  }
  ${fields.join('\n')}
}`);
}

function recordField({ type, idType, lookup, field }: Entity): string {
  if (field === undefined || lookup?.kind !== 'list') return '';
  const seconds = WALK_AGAIN_AFTER_MS / 1000;
  return `
  """
  The ${type.name} with this id; null if it does not exist. The service has no such field, so the record is looked up
  in \`${lookup.adapter.name}\`: first at its last known position and near it, then at both ends of the list, then by
  reading the whole list, at most once in ${seconds} seconds. A record inserted in the middle of the list by someone else
  may not be found for up to ${seconds} seconds.
  """
  ${field}(
    """The id, as the service returns it."""
    id: ${String(idType)}!
  ): ${type.name}`;
}

/**
 * The SDL from which a supergraph is composed (Federation 2 subgraph specification). It omits what every subgraph has,
 * and the directives of operations, which a router does not pass on.
 */
export function subgraphSdl(
  schema: GraphQLSchema,
  { entities, pageInfo }: { entities: readonly Entity[]; pageInfo: string },
): string {
  const keys = new Map(
    entities.map(({ type, lookup }) => [type.name, keyOf(lookup !== undefined)]),
  );
  const root = schema.getQueryType()?.name;
  const document = visit(parse(printSchema(lexicographicSortSchema(schema))), {
    DirectiveDefinition: () => null,
    ScalarTypeDefinition: ({ name }) => (isRouterType(name.value) ? null : false),
    UnionTypeDefinition: ({ name }) => (isRouterType(name.value) ? null : false),
    ObjectTypeDefinition: (node) => {
      const { name, directives = [], fields = [] } = node;
      if (isRouterType(name.value)) return null;
      const key = keys.get(name.value);
      if (key) return { ...node, directives: [...directives, key] };
      if (name.value === pageInfo) return { ...node, directives: [...directives, SHAREABLE] };
      if (name.value !== root) return false;
      return { ...node, fields: fields.filter((field) => !isRouterField(field.name.value)) };
    },
  });
  const hasOneOf = Object.values(schema.getTypeMap()).some(
    (type) => isInputObjectType(type) && type.isOneOf,
  );
  return `${hasOneOf ? `${LINK}\n${ONE_OF}` : LINK}\n${print(document)}\n`;
}

function isRouterType(name: string): boolean {
  return ROUTER_TYPES.includes(name);
}

const LINK = `extend schema
  @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable"])
`;
/** Unlike the other built-in directives of GraphQL, composition refuses it without a definition. */
const ONE_OF = `directive @oneOf on INPUT_OBJECT
`;

const SHAREABLE: ConstDirectiveNode = {
  kind: Kind.DIRECTIVE,
  name: { kind: Kind.NAME, value: 'shareable' },
};

function keyOf(isResolvable: boolean): ConstDirectiveNode {
  return {
    kind: Kind.DIRECTIVE,
    name: { kind: Kind.NAME, value: 'key' },
    arguments: [
      {
        kind: Kind.ARGUMENT,
        name: { kind: Kind.NAME, value: 'fields' },
        value: { kind: Kind.STRING, value: 'id' },
      },
      ...(isResolvable
        ? []
        : [
            {
              kind: Kind.ARGUMENT as const,
              name: { kind: Kind.NAME as const, value: 'resolvable' },
              value: { kind: Kind.BOOLEAN as const, value: false },
            },
          ]),
    ],
  };
}
