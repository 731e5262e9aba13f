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
} from 'graphql';
import { isPage, LARGEST_PAGE, mayBePage, type Adapter } from '../derived.ts';

/**
 * The directives of Federation 2.9 from which a router estimates what an operation costs, before it sends anything.
 *
 * A record costs 1, so a page of the service costs 50. Records have their cost from their type, and not from the field
 * that lists them: routers differ in whether they multiply the weight of a field by the length of its list.
 */
export interface CostDirectives {
  ofType(type: string): readonly ConstDirectiveNode[];
  ofField(type: string, field: string): readonly ConstDirectiveNode[];
}

/** Added to the records of a root field, which costs at least a page: 1 record costs 35, and a full page 84. */
const OF_A_REQUEST = 34;
/** The length of a list that is not paged, as callers are charged for it: docs/authentication.md, what it costs. */
const OF_A_PLAIN_LIST = 10;

/** Otherwise routers refuse an operation with none of the slicing arguments, or two. */
const OPTIONAL = { requireOneSlicingArgument: false };

/** Arguments of `@listSize`. */
interface ListSize {
  /** The length where no slicing argument is given; undefined: the router's own default. */
  readonly assumedSize: number | undefined;
  readonly slicingArguments?: readonly string[];
  readonly sizedFields?: readonly string[];
}

type Field = GraphQLField<unknown, unknown>;
type TypeWithFields = GraphQLObjectType | GraphQLInterfaceType;

/** @param shared types that other subgraphs may have too, so that their cost is not decided here */
export function costDirectives(
  schema: GraphQLSchema,
  adapters: readonly Adapter[],
  shared: readonly string[],
): CostDirectives {
  const roots = [schema.getQueryType(), schema.getMutationType()].filter((root) => root != null);
  const types = Object.values(schema.getTypeMap()).filter(hasFields);
  const records = recordTypes(schema, types, adapters);
  const costly = new Set([...records, ...shared, ...roots.map(({ name }) => name)]);
  const weights = new Map([...roots.flatMap(requestWeights), ...countWeights(adapters)]);
  const sizes = new Map([...servedSizes(schema, types), ...adapters.flatMap(derivedSizes)]);
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

function derivedSizes({ parent, all, connection, size }: Adapter): [string, ListSize][] {
  return [
    ...(all
      ? [sized(parent, all.field, { assumedSize: size, slicingArguments: [all.limit] })]
      : []),
    ...(connection
      ? [
          sized(parent, connection.field, {
            assumedSize: LARGEST_PAGE,
            slicingArguments: ['first', connection.last],
            sizedFields: ['edges', 'nodes'],
          }),
        ]
      : []),
  ];
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
      ...Object.values(type.getFields()).flatMap((field) => sizeOf(schema, type, field)),
      ...(isInResult ? [sized(type.name, items.name, { assumedSize: LARGEST_PAGE })] : []),
    ];
  });
}

function sizeOf(schema: GraphQLSchema, type: TypeWithFields, field: Field): [string, ListSize][] {
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

function directive(name: string, given: Readonly<Record<string, unknown>>): ConstDirectiveNode {
  return {
    kind: Kind.DIRECTIVE,
    name: { kind: Kind.NAME, value: name },
    arguments: Object.entries(given)
      .filter(([, value]) => value !== undefined)
      .map(([argument, value]) => ({
        kind: Kind.ARGUMENT,
        name: { kind: Kind.NAME, value: argument },
        value: parseConstValue(JSON.stringify(value)),
      })),
  };
}
