import {
  getDirectiveValues,
  getNullableType,
  GraphQLError,
  isAbstractType,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  type GraphQLFieldResolver,
  type GraphQLLeafType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
} from 'graphql';

/**
 * Resolvers for any schema. The seed of the object, the field and its arguments determine a value, so it is the same
 * under each alias and in every request; at the root the operation's directives do too. Nulls, failing elements of
 * lists and the possible types of values are random.
 */
export function seededMock(
  seed: number,
  customScalars: readonly unknown[] = CUSTOM,
): { fieldResolver: GraphQLFieldResolver<unknown, unknown>; rootValue: { seed: number } } {
  return {
    rootValue: { seed },
    fieldResolver: (source, args, _, info) => {
      const { fieldName, returnType, path } = info;
      const parent = source as { seed: number };
      const place = path.prev === undefined ? `${parent.seed}${contextOf(info)}` : parent.seed;
      const ofThis = hash(`${place}.${fieldName}${JSON.stringify(args)}`);
      const value = valueOf(returnType, ofThis, info, customScalars);
      if (value instanceof Error) throw value;
      return value;
    },
  };
}

/** Like Shopify's `@inContext`, which chooses the language of the whole answer. */
function contextOf({ schema, operation, variableValues }: GraphQLResolveInfo): string {
  if (!operation.directives?.length) return '';
  const values = schema
    .getDirectives()
    .map((directive) => getDirectiveValues(directive, operation, variableValues));
  return JSON.stringify(values);
}

/** Returns an error in place of some values, and null where the type does not allow it in place of a few. */
function valueOf(
  type: GraphQLOutputType,
  seed: number,
  info: GraphQLResolveInfo,
  customScalars: readonly unknown[],
): unknown {
  if (oneIn(60, seed, 'error')) {
    const extensions = pick([{}, { code: 'X', hint: { deep: [1, null, 'a'] } }], seed);
    return new GraphQLError(`${info.fieldName} failed with ${seed % 1000}: "é"`, { extensions });
  }
  if (oneIn(isNonNullType(type) ? 300 : 12, seed, 'null')) return null;
  const inner = getNullableType(type);
  if (isListType(inner)) {
    const length = pick([0, 1, 2, 3, 5], seed);
    return Array.from({ length }, (_, index) =>
      valueOf(inner.ofType, hash(`${seed}[${index}`), info, customScalars),
    );
  }
  if (isLeafType(inner)) return leafOf(inner, seed, customScalars);
  const object = isAbstractType(inner) ? pick(info.schema.getPossibleTypes(inner), seed) : inner;
  return { __typename: object.name, seed };
}

function leafOf(type: GraphQLLeafType, seed: number, customScalars: readonly unknown[]): unknown {
  if (isEnumType(type)) return pick(type.getValues(), seed).value;
  return pick(VALUES[type.name] ?? customScalars, seed);
}

const TEXTS = [
  '',
  'a',
  'é "\\/\b\n',
  '\u0000\u2028\u2029',
  '😀',
  '\ud800',
  '12',
  'null',
  '{"a":1}',
];

const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  Int: [0, 1, -1, 7, 2_147_483_647, -2_147_483_648],
  Float: [0, 0.1, -1.5, 1e21, 5e-324, 123_456.789, 1.7976931348623157e308, 42],
  Boolean: [true, false],
  ID: ['1', '', 'MDQ6VXNlcjE=', '00', 'é', '12345678901234567890'],
  String: TEXTS,
};

/** A custom scalar may be any value that the service chooses. */
const CUSTOM: readonly unknown[] = [
  ...TEXTS,
  true,
  -0.5,
  [1, [null, { a: [] }], 'x'],
  JSON.parse('{"b":{"d":null,"c":[true]},"a":1,"then":"x","toJSON":1}'),
];

/** An integer that JavaScript cannot represent. TypeScript does not know `rawJSON` yet. */
export const LONG = (JSON as unknown as { rawJSON(text: string): object }).rawJSON(
  '98765432109876543210',
);

function pick<T>(from: readonly T[], seed: number): T {
  return from[hash(`${seed}?`) % from.length]!;
}

function oneIn(count: number, seed: number, what: string): boolean {
  return hash(`${seed}${what}`) % count === 0;
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
