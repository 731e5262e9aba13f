import {
  isInputObjectType,
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
import type { DerivedField, Entity } from '../derived.ts';
import { NO_MARKS, type FieldScopes } from '../field-scopes.ts';
import { isRouterField, ROUTER_TYPES } from '../names.ts';
import { subgraphMarks } from './subgraph-marks.ts';

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

interface SubgraphParts {
  readonly entities: readonly Entity[];
  readonly derived: readonly DerivedField[];
  readonly pageInfo: string;
}

/**
 * The SDL from which a supergraph is composed (Federation 2 subgraph specification). It omits what every subgraph has,
 * and the directives of operations, which a router does not pass on.
 *
 * @param offered what callers see
 */
export function subgraphSdl(
  { schema, scopes }: { readonly schema: GraphQLSchema; readonly scopes: FieldScopes },
  { entities, derived, pageInfo }: SubgraphParts,
): string {
  const keys: Directives = new Map(
    entities.map(({ type, lookup }) => {
      const resolvable = lookup ? undefined : false;
      return [type.name, [directive('key', { fields: 'id', resolvable })]];
    }),
  );
  const marks = subgraphMarks(schema, derived, scopes.marks);
  const root = schema.getQueryType()?.name;
  const document = parse(printSchema(lexicographicSortSchema(schema)));
  const definitions = document.definitions.flatMap((node): DefinitionNode[] => {
    if (node.kind === Kind.DIRECTIVE_DEFINITION) return [];
    if (!isTypeDefinitionNode(node)) return [node];
    return ROUTER_TYPES.includes(node.name.value) ? [] : [marked(node)];
  });
  const hasOneOf = Object.values(schema.getTypeMap()).some(
    (type) => isInputObjectType(type) && type.isOneOf,
  );
  const link = linkOf(marks);
  return `${hasOneOf ? `${link}\n${ONE_OF}` : link}\n${print({ ...document, definitions })}\n`;

  function marked(node: TypeDefinitionNode): TypeDefinitionNode {
    const type = node.name.value;
    if (!('fields' in node)) return withDirectives(node, type);
    const served = (node.fields ?? []).filter(
      ({ name }) => type !== root || !isRouterField(name.value),
    );
    const fields = served.map((field) => {
      const place = `${type}.${field.name.value}`;
      const described = withDirectives(field, place);
      if (!('arguments' in field)) return described;
      const args = (field.arguments ?? []).map((argument) =>
        withDirectives(argument, `${place}(${argument.name.value}:)`),
      );
      return { ...described, arguments: args };
    });
    return { ...withDirectives(node, type), fields } as TypeDefinitionNode;
  }

  function withDirectives<Node extends { readonly directives?: readonly ConstDirectiveNode[] }>(
    node: Node,
    place: string,
  ): Node {
    const { scopes: required, tags } = marks.get(place) ?? NO_MARKS;
    // The directive is for fields and types.
    const hasScopes = required.length > 0 && !place.endsWith(')');
    return {
      ...node,
      directives: [
        ...(node.directives ?? []),
        ...(keys.get(place) ?? []),
        ...(place === pageInfo ? [directive('shareable')] : []),
        ...(hasScopes ? [directive('requiresScopes', { scopes: [required] })] : []),
        ...tags.map((name) => directive('tag', { name })),
      ],
    };
  }
}

function linkOf(marks: FieldScopes['marks']): string {
  const used = [...marks.values()];
  const hasScopes = used.some(({ scopes }) => scopes.length > 0);
  const imports = [
    '@key',
    '@shareable',
    ...(hasScopes ? ['@requiresScopes'] : []),
    ...(used.some(({ tags }) => tags.length > 0) ? ['@tag'] : []),
  ].map((name) => `"${name}"`);
  // The first version that has @requiresScopes.
  const url = `https://specs.apollo.dev/federation/v${hasScopes ? '2.5' : '2.3'}`;
  return imports.length === 2
    ? `extend schema
  @link(url: "${url}", import: [${imports.join(', ')}])
`
    : `extend schema
  @link(
    url: "${url}"
    import: [${imports.join(', ')}]
  )
`;
}

/** Unlike the other built-in directives of GraphQL, composition refuses it without a definition. */
const ONE_OF = `directive @oneOf on INPUT_OBJECT
`;
