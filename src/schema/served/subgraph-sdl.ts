import {
  getNullableType,
  GraphQLFloat,
  GraphQLInt,
  GraphQLString,
  isInputObjectType,
  Kind,
  lexicographicSortSchema,
  parse,
  print,
  printSchema,
  visit,
  type ConstArgumentNode,
  type ConstDirectiveNode,
  type DocumentNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  type InterfaceTypeDefinitionNode,
  type ObjectTypeDefinitionNode,
} from 'graphql';
import { WALK_AGAIN_AFTER_MS } from '../../paging/drain/lookup-walks.ts';
import type { Adapter, ByIdField, Entity, NodeInterface } from '../derived.ts';
import { isRouterField, ROUTER_TYPES } from '../names/served-names.ts';
import { costDirectives } from './cost-directives.ts';

/**
 * The type definitions that make the schema a Federation 2 subgraph, and the fields that return one record by its id.
 *
 * @param root the name of the query root
 */
export function entityTypes(
  entities: readonly Entity[],
  root: string,
  nodes: NodeInterface | undefined,
): DocumentNode {
  const fields = entities.map((entity) => recordField(entity, nodes));
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

function recordField(
  { type, idType, lookup, field }: Entity,
  nodes: NodeInterface | undefined,
): string {
  if (field === undefined || !lookup) return '';
  const takesGlobalId = nodes && idType !== GraphQLFloat;
  const own = lookup.kind === 'id' ? getNullableType(lookup.argument.type) : idType;
  return `
  """
  ${lookup.kind === 'id' ? describeResult(type, lookup) : describeLookup(type, lookup.adapter)}
  """
  ${field}(
    """${takesGlobalId ? `The global \`id\`, or the \`${nodes.recordId}\`.` : 'The id, as the service returns it.'}"""
    id: ${takesGlobalId && WRITTEN_AS_ID.has(idType) ? 'ID' : String(own)}!
  ): ${type.name}`;
}

function describeLookup({ name: type }: GraphQLObjectType, { name }: Adapter): string {
  const seconds = WALK_AGAIN_AFTER_MS / 1000;
  return `The ${type} with this id; null if it does not exist. The service has no such field, so the record is looked up
  in \`${name}\`: first at its last known position and near it, then at both ends of the list, then by
  reading the whole list, at most once in ${seconds} seconds. A record inserted in the middle of the list by someone else
  may not be found for up to ${seconds} seconds.`;
}

function describeResult({ name: type }: GraphQLObjectType, { field, result }: ByIdField): string {
  const failures = result?.failures.map(({ name }) => name).join(', ');
  return `The ${type} with this id, which the service returns in \`${field}\`; null if it does not exist. ${
    failures && `A ${failures} that says anything else is an error.`
  }`.trimEnd();
}

/** An argument of these types could not take a global id, and one of the type `ID` can take their values too. */
const WRITTEN_AS_ID: ReadonlySet<unknown> = new Set([GraphQLInt, GraphQLString]);

/** The version of Federation that the SDL for supergraphs is written for. Since 2.9 it has what fields cost. */
export type FederationVersion = '2.3' | '2.9';

interface SubgraphParts {
  readonly entities: readonly Entity[];
  readonly nodes: NodeInterface | undefined;
  readonly adapters: readonly Adapter[];
  readonly pageInfo: string;
  readonly version: FederationVersion;
}

/**
 * The SDL from which a supergraph is composed (Federation 2 subgraph specification). It omits what every subgraph has,
 * and the directives of operations, which a router does not pass on.
 */
export function subgraphSdl(
  schema: GraphQLSchema,
  { entities, nodes, adapters, pageInfo, version }: SubgraphParts,
): string {
  // Subgraphs that know only the service's ids refer to records by them.
  const ids = nodes ? ['id', nodes.recordId] : ['id'];
  const keys = new Map(
    entities.map(({ type, lookup }) => [
      type.name,
      ids.map((id) => keyOf(id, lookup !== undefined)),
    ]),
  );
  const costs =
    version === '2.9' ? costDirectives(schema, adapters, [pageInfo, ...keys.keys()]) : undefined;
  const root = schema.getQueryType()?.name;
  const withCosts = <Node extends ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode>(
    node: Node,
  ): Node => ({
    ...node,
    fields: (node.fields ?? []).map((field) => ({
      ...field,
      directives: [
        ...(field.directives ?? []),
        ...(costs?.ofField(node.name.value, field.name.value) ?? []),
      ],
    })),
  });
  const document = visit(parse(printSchema(lexicographicSortSchema(schema))), {
    DirectiveDefinition: () => null,
    ScalarTypeDefinition: ({ name }) => (isRouterType(name.value) ? null : false),
    UnionTypeDefinition: ({ name }) => (isRouterType(name.value) ? null : false),
    InterfaceTypeDefinition: withCosts,
    ObjectTypeDefinition: (node) => {
      const name = node.name.value;
      if (isRouterType(name)) return null;
      return withCosts({
        ...node,
        directives: [
          ...(node.directives ?? []),
          ...(keys.get(name) ?? []),
          ...(name === pageInfo ? [SHAREABLE] : []),
          ...(costs?.ofType(name) ?? []),
        ],
        fields: (node.fields ?? []).filter(
          (field) => name !== root || !isRouterField(field.name.value),
        ),
      });
    },
  });
  const hasOneOf = Object.values(schema.getTypeMap()).some(
    (type) => isInputObjectType(type) && type.isOneOf,
  );
  return `${hasOneOf ? `${LINKS[version]}\n${ONE_OF}` : LINKS[version]}\n${print(document)}\n`;
}

function isRouterType(name: string): boolean {
  return ROUTER_TYPES.includes(name);
}

const LINKS: Readonly<Record<FederationVersion, string>> = {
  '2.3': `extend schema
  @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable"])
`,
  '2.9': `extend schema
  @link(
    url: "https://specs.apollo.dev/federation/v2.9"
    import: ["@key", "@shareable", "@cost", "@listSize"]
  )
`,
};
/** Unlike the other built-in directives of GraphQL, composition refuses it without a definition. */
const ONE_OF = `directive @oneOf on INPUT_OBJECT
`;

const SHAREABLE: ConstDirectiveNode = {
  kind: Kind.DIRECTIVE,
  name: { kind: Kind.NAME, value: 'shareable' },
};

function keyOf(field: string, isResolvable: boolean): ConstDirectiveNode {
  return {
    kind: Kind.DIRECTIVE,
    name: { kind: Kind.NAME, value: 'key' },
    arguments: [
      {
        kind: Kind.ARGUMENT,
        name: { kind: Kind.NAME, value: 'fields' },
        value: { kind: Kind.STRING, value: field },
      },
      ...(isResolvable ? [] : [NOT_RESOLVABLE]),
    ],
  };
}

const NOT_RESOLVABLE: ConstArgumentNode = {
  kind: Kind.ARGUMENT,
  name: { kind: Kind.NAME, value: 'resolvable' },
  value: { kind: Kind.BOOLEAN, value: false },
};
