import {
  getNamedType,
  getNullableType,
  isCompositeType,
  isInputObjectType,
  isListType,
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
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  type TypeDefinitionNode,
} from 'graphql';
import {
  isPage,
  LARGEST_PAGE,
  mayBePage,
  objectTypesOf,
  typesWithFields,
  type Adapter,
  type DerivedField,
  type Entity,
  type TypeWithFields,
} from '../derived.ts';
import { sizeOf, type ListSize } from '../derived-fields.ts';
import { NO_MARKS, type FieldScopes } from '../field-scopes.ts';
import { isRouterField, ROUTER_TYPES } from '../names.ts';
import { subgraphMarks } from './subgraph-marks.ts';

/** Added to the records of a root field, which costs at least a page: 1 record costs 35, and a full page 84. */
const OF_A_REQUEST = 34;
/** The length of a list that is not paged, as callers are charged for it: docs/authentication.md, what it costs. */
const OF_A_PLAIN_LIST = 10;

/** Otherwise routers refuse an operation with none of the slicing arguments, or two. */
const OPTIONAL = { requireOneSlicingArgument: false };

type Field = GraphQLField<unknown, unknown>;
/** By the names of types, and the coordinates of fields. */
type Directives = ReadonlyMap<string, readonly ConstDirectiveNode[]>;

/**
 * The directives of Federation 2.9 from which a router estimates what an operation costs, before it sends anything.
 *
 * A record costs 1, so a page of the service costs 50. Records have their cost from their type, and not from the field
 * that lists them: routers differ in whether they multiply the weight of a field by the length of its list.
 *
 * @param shared types that other subgraphs may have too, so that their cost is not decided here
 */
function costDirectives(
  schema: GraphQLSchema,
  derived: readonly DerivedField[],
  shared: readonly string[],
): Directives {
  const roots = [schema.getQueryType(), schema.getMutationType()].filter((root) => root != null);
  const types = typesWithFields(schema);
  const lists = derived.flatMap((field) => (field.kind === 'connection' ? [field.adapter] : []));
  const records = recordTypes(schema, types, lists);
  const costly = new Set([...records, ...shared, ...roots.map(({ name }) => name)]);
  const free = types.filter((type) => isObjectType(type) && !costly.has(type.name));
  const weights = new Map([
    ...free.map(({ name }) => [name, 0] as const),
    ...roots.flatMap(requestWeights),
    ...countWeights(lists),
  ]);
  const sizes = new Map([...servedSizes(schema, types), ...derived.flatMap(derivedSize)]);
  return new Map(
    Array.from(new Set([...weights.keys(), ...sizes.keys()]), (place) => {
      const [weight, size] = [weights.get(place), sizes.get(place)];
      return [
        place,
        [
          ...(weight === undefined ? [] : [directive('cost', { weight })]),
          ...(size === undefined ? [] : [directive('listSize', { ...size, ...OPTIONAL })]),
        ],
      ];
    }),
  );
}

/** Edges are not records: they would count twice, with their nodes. */
function recordTypes(
  schema: GraphQLSchema,
  types: readonly TypeWithFields[],
  adapters: readonly Adapter[],
): string[] {
  const edges = new Set(adapters.map(({ connection }) => connection?.edge));
  return types
    .flatMap((type) => Object.values(type.getFields()))
    .filter(isList)
    .map(({ type }) => getNamedType(type))
    .filter(({ name }) => !edges.has(name))
    .flatMap((type) => [type, ...(isCompositeType(type) ? objectTypesOf(schema, type) : [])])
    .map(({ name }) => name);
}

/** A root field that is a list has no weight: Apollo Router multiplies it by the length. */
function requestWeights(root: GraphQLObjectType): [string, number][] {
  return Object.values(root.getFields())
    .filter((field) => !isList(field))
    .map(({ name }) => [`${root.name}.${name}`, OF_A_REQUEST]);
}

/** Counting reads a whole list. Lists of one kind of record share the type of their connections. */
function countWeights(adapters: readonly Adapter[]): [string, number][] {
  const lists = adapters.toSorted((a, b) => (a.size ?? 0) - (b.size ?? 0));
  return lists.flatMap(({ connection, size }): [string, number][] =>
    connection && size !== undefined ? [[`${connection.type}.totalCount`, size]] : [],
  );
}

function derivedSize(field: DerivedField): [string, ListSize][] {
  const size = sizeOf(field);
  return size ? [sized(field.parent, field.name, size)] : [];
}

/**
 * The lists within a page or a connection have their size from the field above them. Not in a result, because a union has
 * no `items` that a directive of the field could name: there the page itself has it, unless other fields return it too.
 */
function servedSizes(
  schema: GraphQLSchema,
  types: readonly TypeWithFields[],
): [string, ListSize][] {
  const fields = types.flatMap((type) => Object.values(type.getFields()));
  const returned = new Set(fields.map(({ type }) => getNamedType(type)));
  return types.flatMap((type) => {
    const { items } = type.getFields();
    const isInResult = items && isPage(type) && isList(items) && !returned.has(type);
    return [
      ...Object.values(type.getFields()).flatMap((field) => servedSize(schema, type, field)),
      ...(isInResult ? [sized(type.name, items.name, { assumedSize: LARGEST_PAGE })] : []),
    ];
  });
}

function servedSize(
  schema: GraphQLSchema,
  type: TypeWithFields,
  field: Field,
): [string, ListSize][] {
  const of = getNamedType(field.type);
  if (isPage(of)) {
    const slicingArguments = field.args.flatMap(({ name }) => (name === 'first' ? name : []));
    return [
      sized(type.name, field.name, {
        assumedSize: LARGEST_PAGE,
        slicingArguments,
        sizedFields: ['items'],
      }),
    ];
  }
  const hasParts = 'pageInfo' in type.getFields();
  return isList(field) && isCompositeType(of) && !hasParts && !mayBePage(schema, of)
    ? [sized(type.name, field.name, { assumedSize: OF_A_PLAIN_LIST })]
    : [];
}

function sized(type: string, field: string, size: ListSize): [string, ListSize] {
  return [`${type}.${field}`, size];
}

function isList({ type }: Field): boolean {
  return isListType(getNullableType(type));
}

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

/** The version of Federation that the SDL for supergraphs is written for. Since 2.9 it contains the costs of fields. */
export type FederationVersion = '2.3' | '2.9';

interface SubgraphParts {
  readonly entities: readonly Entity[];
  readonly derived: readonly DerivedField[];
  readonly pageInfo: string;
  readonly version: FederationVersion;
}

/**
 * The SDL from which a supergraph is composed (Federation 2 subgraph specification). It omits what every subgraph has,
 * and the directives of operations, which a router does not pass on.
 *
 * @param offered what callers see
 */
export function subgraphSdl(
  { schema, scopes }: { readonly schema: GraphQLSchema; readonly scopes: FieldScopes },
  { entities, derived, pageInfo, version }: SubgraphParts,
): string {
  const keys: Directives = new Map(
    entities.map(({ type, lookup }) => {
      const resolvable = lookup ? undefined : false;
      return [type.name, [directive('key', { fields: 'id', resolvable })]];
    }),
  );
  const costs: Directives =
    version === '2.9' ? costDirectives(schema, derived, [pageInfo, ...keys.keys()]) : new Map();
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
  const link = linkOf(version, marks);
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
        ...(costs.get(place) ?? []),
        ...(hasScopes ? [directive('requiresScopes', { scopes: [required] })] : []),
        ...tags.map((name) => directive('tag', { name })),
      ],
    };
  }
}

function linkOf(version: FederationVersion, marks: FieldScopes['marks']): string {
  const used = [...marks.values()];
  const hasScopes = used.some(({ scopes }) => scopes.length > 0);
  const imports = [
    '@key',
    '@shareable',
    ...(version === '2.9' ? ['@cost', '@listSize'] : []),
    ...(hasScopes ? ['@requiresScopes'] : []),
    ...(used.some(({ tags }) => tags.length > 0) ? ['@tag'] : []),
  ].map((name) => `"${name}"`);
  // The first version that has @requiresScopes.
  const linked = version === '2.3' && hasScopes ? '2.5' : version;
  const url = `https://specs.apollo.dev/federation/v${linked}`;
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
