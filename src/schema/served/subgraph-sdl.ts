import {
  isInputObjectType,
  isTypeDefinitionNode,
  Kind,
  lexicographicSortSchema,
  parse,
  print,
  printSchema,
  type DefinitionNode,
  type FieldDefinitionNode,
  type GraphQLSchema,
  type ObjectTypeDefinitionNode,
} from 'graphql';
import type { Entity } from '../derived.ts';
import type { ScopesByPlace } from '../field-scopes.ts';

/** What a router requests from each subgraph by itself (Federation, subgraph specification). */
const ROUTER_NAMES = ['_service', '_entities', '_Any', '_Entity', '_Service'];

interface SubgraphParts {
  readonly schema: GraphQLSchema;
  readonly scopes: ScopesByPlace;
  readonly entities: readonly Entity[];
  readonly pageInfo: string;
}

/**
 * The SDL from which a supergraph is composed (Federation 2 subgraph specification). It omits what every subgraph has,
 * and the directives of operations, which a router does not pass on.
 */
export function subgraphSdl({ schema, scopes, entities, pageInfo }: SubgraphParts): string {
  /** By the names of types, and the coordinates of fields. */
  const added = new Map<string, string>(
    entities.map(({ type, lookup }) => [
      type.name,
      `@key(fields: "id"${lookup ? '' : ', resolvable: false'})`,
    ]),
  );
  added.set(pageInfo, '@shareable');
  for (const [place, all] of scopes) {
    added.set(place, `${added.get(place) ?? ''} @requiresScopes(scopes: [${JSON.stringify(all)}])`);
  }
  const document = parse(printSchema(lexicographicSortSchema(schema)));
  const definitions = document.definitions.flatMap((node): DefinitionNode[] => {
    if (node.kind === Kind.DIRECTIVE_DEFINITION) return [];
    if (!isTypeDefinitionNode(node)) return [node];
    const type = node.name.value;
    if (ROUTER_NAMES.includes(type)) return [];
    if (node.kind !== Kind.OBJECT_TYPE_DEFINITION) return [node];
    const served = node.fields!.filter(
      ({ name }) => type !== schema.getQueryType()!.name || !ROUTER_NAMES.includes(name.value),
    );
    const fields = served.map((field) => withText(field, added.get(`${type}.${field.name.value}`)));
    return [{ ...withText(node, added.get(type)), fields }];
  });
  const hasOneOf = Object.values(schema.getTypeMap()).some(
    (type) => isInputObjectType(type) && type.isOneOf,
  );
  const all = [
    linkOf(scopes.size > 0),
    ...(hasOneOf ? [ONE_OF] : []),
    print({ ...document, definitions }),
  ];
  return `${all.join('\n\n')}\n`;
}

/** @param text directives */
function withText<Node extends ObjectTypeDefinitionNode | FieldDefinitionNode>(
  node: Node,
  text = '',
): Node {
  const [type] = parse(`type T ${text}`).definitions as [ObjectTypeDefinitionNode];
  return { ...node, directives: [...node.directives!, ...type.directives!] };
}

function linkOf(hasScopes: boolean): string {
  const imports = ['@key', '@shareable', ...(hasScopes ? ['@requiresScopes'] : [])];
  // The first version that has @requiresScopes.
  const url = `https://specs.apollo.dev/federation/v${hasScopes ? '2.5' : '2.3'}`;
  return `extend schema @link(url: "${url}", import: ${JSON.stringify(imports)})`;
}

/** Unlike the other built-in directives of GraphQL, composition refuses it without a definition. */
const ONE_OF = 'directive @oneOf on INPUT_OBJECT';
