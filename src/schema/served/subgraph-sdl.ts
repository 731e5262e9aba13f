import {
  getNamedType,
  isInputObjectType,
  isIntrospectionType,
  isObjectType,
  isTypeDefinitionNode,
  Kind,
  lexicographicSortSchema,
  parse,
  parseConstValue,
  print,
  printSchema,
  type ConstDirectiveNode,
  type DefinitionNode,
  type GraphQLSchema,
  type TypeDefinitionNode,
} from 'graphql';
import type { Entity } from '../derived.ts';
import { addScopes, type ScopesByPlace } from '../field-scopes.ts';

/** By the names of types, and the coordinates of fields. */
type Directives = ReadonlyMap<string, readonly ConstDirectiveNode[]>;

function directive(name: string, args: Readonly<Record<string, unknown>> = {}): ConstDirectiveNode {
  return {
    kind: Kind.DIRECTIVE,
    name: { kind: Kind.NAME, value: name },
    arguments: Object.entries(args)
      .filter(([, value]) => value !== undefined)
      .map(([argument, value]) => ({
        kind: Kind.ARGUMENT,
        name: { kind: Kind.NAME, value: argument },
        value: parseConstValue(JSON.stringify(value)),
      })),
  };
}

/** What a router requests from each subgraph by itself (Federation, subgraph specification). */
const ROUTER_NAMES = ['_service', '_entities', '_Any', '_Entity', '_Service'];

interface SubgraphParts {
  readonly entities: readonly Entity[];
  readonly pageInfo: string;
}

/**
 * The SDL from which a supergraph is composed (Federation 2 subgraph specification). It omits what every subgraph has,
 * and the directives of operations, which a router does not pass on.
 *
 * @param offered what callers see
 */
export function subgraphSdl(
  { schema, scopes }: { readonly schema: GraphQLSchema; readonly scopes: ScopesByPlace },
  { entities, pageInfo }: SubgraphParts,
): string {
  const keys: Directives = new Map(
    entities.map(({ type, lookup }) => {
      const resolvable = lookup ? undefined : false;
      return [type.name, [directive('key', { fields: 'id', resolvable })]];
    }),
  );
  const required = scopesForRouters(schema, scopes);
  const root = schema.getQueryType()?.name;
  const document = parse(printSchema(lexicographicSortSchema(schema)));
  const definitions = document.definitions.flatMap((node): DefinitionNode[] => {
    if (node.kind === Kind.DIRECTIVE_DEFINITION) return [];
    if (!isTypeDefinitionNode(node)) return [node];
    return ROUTER_NAMES.includes(node.name.value) ? [] : [marked(node)];
  });
  const hasOneOf = Object.values(schema.getTypeMap()).some(
    (type) => isInputObjectType(type) && type.isOneOf,
  );
  const all = [
    linkOf(required.size > 0),
    ...(hasOneOf ? [ONE_OF] : []),
    print({ ...document, definitions }),
  ];
  return `${all.join('\n\n')}\n`;

  function marked(node: TypeDefinitionNode): TypeDefinitionNode {
    const type = node.name.value;
    if (!('fields' in node)) return withDirectives(node, type);
    const served = (node.fields ?? []).filter(
      ({ name }) => type !== root || !ROUTER_NAMES.includes(name.value),
    );
    const fields = served.map((field) => withDirectives(field, `${type}.${field.name.value}`));
    return { ...withDirectives(node, type), fields } as TypeDefinitionNode;
  }

  function withDirectives<Node extends { readonly directives?: readonly ConstDirectiveNode[] }>(
    node: Node,
    place: string,
  ): Node {
    const needed = required.get(place);
    return {
      ...node,
      directives: [
        ...(node.directives ?? []),
        ...(keys.get(place) ?? []),
        ...(place === pageInfo ? [directive('shareable')] : []),
        ...(needed ? [directive('requiresScopes', { scopes: [needed] })] : []),
      ],
    };
  }
}

/**
 * The gateway knows what a type needs wherever it is returned. A router looks only at a field and its parent, so the
 * scopes of a type are also at each field that returns it. Not at fields of interfaces: composition refuses scopes
 * there, and copies those of their types.
 */
function scopesForRouters(schema: GraphQLSchema, places: ScopesByPlace): ScopesByPlace {
  const all = new Map(places);
  if (places.size === 0) return all;
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || isIntrospectionType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      const ofType = places.get(getNamedType(field.type).name) ?? [];
      addScopes(all, `${type.name}.${field.name}`, ofType);
    }
  }
  return all;
}

function linkOf(hasScopes: boolean): string {
  const imports = ['@key', '@shareable', ...(hasScopes ? ['@requiresScopes'] : [])];
  // The first version that has @requiresScopes.
  const url = `https://specs.apollo.dev/federation/v${hasScopes ? '2.5' : '2.3'}`;
  return `extend schema @link(url: "${url}", import: ${JSON.stringify(imports)})`;
}

/** Unlike the other built-in directives of GraphQL, composition refuses it without a definition. */
const ONE_OF = 'directive @oneOf on INPUT_OBJECT';
