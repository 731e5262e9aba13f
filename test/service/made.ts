import { readFileSync } from 'node:fs';
import {
  buildSchema,
  getNamedType,
  getNullableType,
  GraphQLError,
  isAbstractType,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  type GraphQLField,
  type GraphQLList,
  type GraphQLNamedOutputType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
} from 'graphql';
import { pageOf, range } from './lists.ts';

interface MadeOptions {
  /** How many records lists of the root have. Default: 137, which are three pages. */
  readonly counts?: Readonly<Record<string, number>>;
  /** The page limits of lists of the root. Default: 50. */
  readonly limits?: Readonly<Record<string, number>>;
  /** How many records are in each list below the first records, and the page limit of all such lists. */
  readonly nested?: { readonly counts: readonly number[]; readonly limit: number };
  /** Root fields whose result is an error. */
  readonly refused?: readonly string[];
  /** Whether some fields fail, and some are null that may not be. */
  readonly fails?: boolean;
  /** The values of the schema's own scalars. */
  readonly scalars?: readonly unknown[];
}

/** Vacancies with candidates and their comments. */
export function richSchema(): GraphQLSchema {
  return made(schemaIn('schema/rich.graphql'), { counts: { vacancies: 64 } });
}

/** Lists and records in the manner of services that return errors as data. */
export function resultsSchema({ managers = true } = {}): GraphQLSchema {
  const refused = managers ? [] : ['managers'];
  return made(schemaIn('schema/results.graphql'), { counts: { personSources: 320 }, refused });
}

function schemaIn(path: string): GraphQLSchema {
  return buildSchema(readFileSync(path, 'utf8'));
}

const RECORDS = 137;
const NESTED = { counts: [0, 120, 26], limit: 20 };
/** Every such record is null where a page may have null. */
const HOLE = 13;
/** Records from this id on belong to another customer of the service. */
const OF_ANOTHER = 2_000_000_000;

/** Its type and its id determine the values of its fields. */
interface MadeObject {
  readonly __typename: string;
  readonly id: number;
}

type Field = GraphQLField<unknown, unknown>;
type Args = Readonly<Record<string, unknown>>;

/**
 * Gives any schema resolvers. A value depends only on its object, its field and the arguments, so it is the same under
 * each alias and in every request. Lists in pages and records by their id are recognized by their shape.
 */
export function made(schema: GraphQLSchema, options: MadeOptions = {}): GraphQLSchema {
  const { counts = {}, limits = {}, nested = NESTED } = options;
  const { refused = [], fails = false, scalars = SCALARS } = options;
  const root = schema.getQueryType()!;
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields())) {
      field.resolve = (source, args) => {
        const object = (source ?? {}) as Partial<MadeObject>;
        if (Object.hasOwn(object, field.name)) return (object as Args)[field.name];
        return type === root ? ofRoot(field, args) : ofObject(type, object.id ?? 0, field, args);
      };
    }
  }
  return schema;

  function ofRoot(field: Field, args: Args): unknown {
    const [success, ...others] = membersOf(getNamedType(field.type));
    if (refused.includes(field.name)) return errorOf(others, 'FORBIDDEN');
    const id = Number(args['id']);
    if (!isObjectType(success) || Number.isNaN(id)) return ofObject(root, 0, field, args);
    const isForeign = id >= OF_ANOTHER;
    const other = others.find((each) => isObjectType(each) && !isError(each));
    if (isForeign && other) return objectOf(other, id);
    if (id >= 1 && id <= RECORDS) return objectOf(success, id);
    return errorOf(others, isForeign ? 'FORBIDDEN' : 'NOT_FOUND');
  }

  function ofObject(type: GraphQLObjectType, id: number, field: Field, args: Args): unknown {
    const place = `${type.name}.${id}.${field.name}`;
    const page = membersOf(getNamedType(field.type)).find(isPage);
    if (!page) {
      const value = valueOf(field.type, hash(place + JSON.stringify(args)), field.name);
      if (value instanceof Error) throw value;
      return value;
    }
    const { first, after, afterCursor, ...filters } = args;
    const isFiltered = field.args.some(
      ({ name, defaultValue = null }) => (filters[name] ?? defaultValue) !== defaultValue,
    );
    const filter = JSON.stringify(filters);
    const isRoot = type === root;
    const seed = hash(place);
    const count = isRoot ? (counts[field.name] ?? RECORDS) : (nested.counts[id] ?? seed % 9);
    const ids = range(count)
      .map((each) => (isRoot ? each : 1 + ((seed + each) % RECORDS)))
      .filter((each) => !isFiltered || hash(`${each}${filter}`) % 3 > 0);
    const asked = { first, after: after ?? afterCursor } as { first: number; after: string };
    const { items, ...rest } = pageOf(
      ids,
      asked,
      isRoot ? (limits[field.name] ?? 50) : nested.limit,
    );
    const listed = getNullableType(
      page.getFields()['items']!.type,
    ) as GraphQLList<GraphQLOutputType>;
    const recordOf = (each: number) =>
      each % HOLE === 0 && !isNonNullType(listed.ofType)
        ? null
        : objectOf(getNamedType(listed), each);
    return { __typename: page.name, ...rest, items: items.map(recordOf) };
  }

  function valueOf(type: GraphQLOutputType, seed: number, name: string): unknown {
    if (fails && hash(`${seed}error`) % 60 === 0) {
      const extensions = pick([{}, { code: 'X', hint: { deep: [1, null, 'a'] } }], seed);
      return new GraphQLError(`${name} failed with ${seed % 1000}: "é"`, { extensions });
    }
    const isNull = hash(`${seed}null`) % (isNonNullType(type) ? 300 : 12) === 0;
    if (isNull && (fails || !isNonNullType(type))) return null;
    const inner = getNullableType(type);
    if (isListType(inner))
      return range(pick([0, 1, 2, 3, 5], seed)).map((at) =>
        valueOf(inner.ofType, hash(`${seed}[${at}`), name),
      );
    if (isEnumType(inner)) return pick(inner.getValues(), seed).value;
    if (isLeafType(inner)) return pick(VALUES[inner.name] ?? scalars, seed);
    return objectOf(inner, 1 + (seed % RECORDS));
  }

  function objectOf(type: GraphQLNamedOutputType, id: number): MadeObject {
    return { __typename: pick(membersOf(type), id).name, id };
  }

  function membersOf(type: GraphQLNamedOutputType): readonly GraphQLNamedOutputType[] {
    return isAbstractType(type) ? schema.getPossibleTypes(type) : [type];
  }
}

function isPage(type: GraphQLNamedOutputType): type is GraphQLObjectType {
  const { items, pageInfo } = isObjectType(type) ? type.getFields() : {};
  return pageInfo !== undefined && isListType(getNullableType(items?.type));
}

function isError(type: GraphQLNamedOutputType): boolean {
  return isObjectType(type) && 'errorType' in type.getFields();
}

function errorOf(members: readonly GraphQLNamedOutputType[], errorType: string): object | null {
  const type = members.find(isError);
  return type ? { __typename: type.name, errorType, message: `It is ${errorType}.` } : null;
}

const TEXTS = ['', 'a', 'é "\\/\b\n', '\0\u2028\u2029', '😀', '12', 'null', '{"a":1}'];

const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  Int: [0, 1, -1, 7, 2_147_483_647, -2_147_483_648],
  Float: [0, 0.1, -1.5, 1e21, 5e-324, 123_456.789, 1.7976931348623157e308, 42],
  Boolean: [true, false],
  ID: ['1', '', 'MDQ6VXNlcjE=', '00', 'é', '12345678901234567890'],
  String: TEXTS,
};

/** A custom scalar may be any value that the service chooses. */
const SCALARS: readonly unknown[] = [
  ...TEXTS,
  true,
  -0.5,
  [1, [null, { a: [] }], 'x'],
  JSON.parse('{"b":{"d":null,"c":[true]},"a":1,"then":"x","toJSON":1}'),
];

function pick<T>(from: readonly T[], seed: number): T {
  return from[hash(`${seed}?`) % from.length]!;
}

/** FNV-1a with its bits mixed once more: similar texts must not get similar numbers. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  value = Math.imul(value ^ (value >>> 12), 0x297a2d39);
  return (value ^ (value >>> 15)) >>> 0;
}
