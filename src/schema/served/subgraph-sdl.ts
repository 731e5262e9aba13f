import {
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isInterfaceType,
  isIntrospectionType,
  isListType,
  isObjectType,
  Kind,
  parseConstValue,
  type ConstDirectiveNode,
  type GraphQLField,
  type GraphQLInterfaceType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  isInputObjectType,
  lexicographicSortSchema,
  parse,
  print,
  printSchema,
  visit,
  type ConstArgumentNode,
  type InputObjectTypeDefinitionNode,
  type InterfaceTypeDefinitionNode,
  type ObjectTypeDefinitionNode,
  type TypeDefinitionNode,
} from 'graphql';
import {
  isPage,
  LARGEST_PAGE,
  mayBePage,
  type Adapter,
  type DerivedField,
  type Entity,
  type NodeInterface,
} from '../derived.ts';
import { sizeOf, type ListSize } from '../derived-fields.ts';
import type { FieldScopes } from '../field-scopes.ts';
import { isRouterField, ROUTER_TYPES } from '../names.ts';
import { subgraphMarks } from './subgraph-marks.ts';

/**
 * The directives of Federation 2.9 from which a router estimates what an operation costs, before it sends anything.
 *
 * A record costs 1, so a page of the service costs 50. Records have their cost from their type, and not from the field
 * that lists them: routers differ in whether they multiply the weight of a field by the length of its list.
 */
interface CostDirectives {
  ofType(type: string): readonly ConstDirectiveNode[];
  ofField(type: string, field: string): readonly ConstDirectiveNode[];
}

/** Added to the records of a root field, which costs at least a page: 1 record costs 35, and a full page 84. */
const OF_A_REQUEST = 34;
/** The length of a list that is not paged, as callers are charged for it: docs/authentication.md, what it costs. */
const OF_A_PLAIN_LIST = 10;

/** Otherwise routers refuse an operation with none of the slicing arguments, or two. */
const OPTIONAL = { requireOneSlicingArgument: false };

type Field = GraphQLField<unknown, unknown>;
type TypeWithFields = GraphQLObjectType | GraphQLInterfaceType;

/** @param shared types that other subgraphs may have too, so that their cost is not decided here */
function costDirectives(
  schema: GraphQLSchema,
  derived: readonly DerivedField[],
  shared: readonly string[],
): CostDirectives {
  const roots = [schema.getQueryType(), schema.getMutationType()].filter((root) => root != null);
  const types = Object.values(schema.getTypeMap()).filter(hasFields);
  const lists = derived.flatMap((field) => (field.kind === 'connection' ? [field.adapter] : []));
  const records = recordTypes(schema, types, lists);
  const costly = new Set([...records, ...shared, ...roots.map(({ name }) => name)]);
  const weights = new Map([...roots.flatMap(requestWeights), ...countWeights(lists)]);
  const sizes = new Map([...servedSizes(schema, types), ...derived.flatMap(derivedSize)]);
  return {
    ofType: (name) => (costly.has(name) ? [] : [directive('cost', { weight: 0 })]),
    ofField: (type, field) => {
      const [weight, size] = [weights.get(`${type}.${field}`), sizes.get(`${type}.${field}`)];
      return [
        ...(weight === undefined ? [] : [directive('cost', { weight })]),
        ...(size === undefined ? [] : [directive('listSize', { ...size, ...OPTIONAL })]),
      ];
    },
  };
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
    .flatMap((type) => [type, ...(isAbstractType(type) ? schema.getPossibleTypes(type) : [])])
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

function hasFields(type: GraphQLNamedType): type is TypeWithFields {
  return (isObjectType(type) || isInterfaceType(type)) && !isIntrospectionType(type);
}

function directive(name: string, args: Readonly<Record<string, unknown>>): ConstDirectiveNode {
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

/** The version of Federation that the SDL for supergraphs is written for. Since 2.9 it has what fields cost. */
export type FederationVersion = '2.3' | '2.9';

interface SubgraphParts {
  readonly entities: readonly Entity[];
  readonly nodes: NodeInterface | undefined;
  readonly derived: readonly DerivedField[];
  readonly pageInfo: string;
  readonly scopes: FieldScopes;
  readonly version: FederationVersion;
}

/**
 * The SDL from which a supergraph is composed (Federation 2 subgraph specification). It omits what every subgraph has,
 * and the directives of operations, which a router does not pass on.
 */
export function subgraphSdl(
  schema: GraphQLSchema,
  { entities, nodes, derived, pageInfo, scopes, version }: SubgraphParts,
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
    version === '2.9' ? costDirectives(schema, derived, [pageInfo, ...keys.keys()]) : undefined;
  const root = schema.getQueryType()?.name;
  const marks = subgraphMarks(schema, derived, scopes.marks);
  const tagsAt = (place: string) =>
    (marks.get(place)?.tags ?? []).map((name) => directive('tag', { name }));
  // An argument has none: the directive is for fields and types.
  const guardsAt = (place: string) => {
    const required = marks.get(place)?.scopes ?? [];
    return [
      ...(required.length > 0 ? [directive('requiresScopes', { scopes: [required] })] : []),
      ...tagsAt(place),
    ];
  };
  const withCosts = <Node extends ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode>(
    node: Node,
  ): Node => ({
    ...node,
    fields: (node.fields ?? []).map((field) => ({
      ...field,
      directives: [
        ...(field.directives ?? []),
        ...(costs?.ofField(node.name.value, field.name.value) ?? []),
        ...guardsAt(`${node.name.value}.${field.name.value}`),
      ],
      arguments: (field.arguments ?? []).map((argument) => ({
        ...argument,
        directives: [
          ...(argument.directives ?? []),
          ...tagsAt(`${node.name.value}.${field.name.value}(${argument.name.value}:)`),
        ],
      })),
    })),
  });
  const tagged = <Node extends TypeDefinitionNode>(node: Node): Node => ({
    ...node,
    directives: [...(node.directives ?? []), ...guardsAt(node.name.value)],
  });
  const withTaggedFields = (node: InputObjectTypeDefinitionNode) => ({
    ...node,
    fields: (node.fields ?? []).map((field) => ({
      ...field,
      directives: [
        ...(field.directives ?? []),
        ...tagsAt(`${node.name.value}.${field.name.value}`),
      ],
    })),
  });
  const document = visit(parse(printSchema(lexicographicSortSchema(schema))), {
    DirectiveDefinition: () => null,
    ScalarTypeDefinition: (node) => (isRouterType(node.name.value) ? null : tagged(node)),
    UnionTypeDefinition: (node) => (isRouterType(node.name.value) ? null : tagged(node)),
    EnumTypeDefinition: tagged,
    InputObjectTypeDefinition: (node) => tagged(withTaggedFields(node)),
    InterfaceTypeDefinition: (node) => tagged(withCosts(node)),
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
          ...guardsAt(name),
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
  const link = linkOf(version, marks);
  return `${hasOneOf ? `${link}\n${ONE_OF}` : link}\n${print(document)}\n`;
}

function isRouterType(name: string): boolean {
  return ROUTER_TYPES.includes(name);
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
