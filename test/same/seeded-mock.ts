import {
  getDirectiveValues,
  getNullableType,
  GraphQLError,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  isAbstractType,
  type GraphQLFieldResolver,
  type GraphQLLeafType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
} from 'graphql';
import { printExactly, Verbatim } from './exact-json.ts';

/** An object of the mock. Its seed determines everything below it. */
interface Mocked {
  readonly __typename: string;
  readonly seed: number;
}

/** How often a value is a fault (one in this many; 0: never), and the values of custom scalars. */
export interface Mix {
  readonly errors?: number;
  /** A null that the type does not allow, which graphql-js turns into an error. */
  readonly forbiddenNulls?: number;
  readonly customScalars?: readonly unknown[];
}

/**
 * Resolvers for any schema. The seed of the object, the field and its arguments determine a value, so it is the same
 * under each alias and in every request; at the root the operation's directives do too. Nulls, failing elements of
 * lists and the possible types of values are random.
 */
export function seededMock(
  seed: number,
  { errors = 60, forbiddenNulls = 300, customScalars = CUSTOM }: Mix = {},
): { fieldResolver: GraphQLFieldResolver<unknown, unknown>; rootValue: { seed: number } } {
  const mix = { errors, forbiddenNulls, customScalars };
  return {
    rootValue: { seed },
    fieldResolver: (source, args, _, info) => {
      const { fieldName, returnType, path } = info;
      const parent = source as { seed: number };
      const place = path.prev === undefined ? `${parent.seed}${contextOf(info)}` : parent.seed;
      return valueOf(returnType, hash(`${place}.${fieldName}${printExactly(args)}`), info, mix);
    },
  };
}

/** Like Shopify's `@inContext`, which chooses the language of the whole answer. */
function contextOf({ schema, operation, variableValues }: GraphQLResolveInfo): string {
  if (!operation.directives?.length) return '';
  const values = schema
    .getDirectives()
    .map((directive) => getDirectiveValues(directive, operation, variableValues));
  return printExactly(values);
}

function valueOf(
  type: GraphQLOutputType,
  seed: number,
  info: GraphQLResolveInfo,
  mix: Required<Mix>,
) {
  const value = valueOrError(type, seed, info, mix);
  if (value instanceof Error) throw value;
  return value;
}

function valueOrError(
  type: GraphQLOutputType,
  seed: number,
  info: GraphQLResolveInfo,
  mix: Required<Mix>,
): unknown {
  if (oneIn(mix.errors, seed, 'error')) return failure(seed, info);
  const isNull = isNonNullType(type)
    ? oneIn(mix.forbiddenNulls, seed, 'null')
    : oneIn(12, seed, 'null');
  if (isNull) return null;
  const inner = getNullableType(type);
  if (isListType(inner)) {
    const length = pick([0, 1, 2, 3, 5], seed);
    return Array.from({ length }, (_, index) =>
      valueOrError(inner.ofType, hash(`${seed}[${index}`), info, mix),
    );
  }
  if (isLeafType(inner)) return leaf(inner, seed, mix);
  const object = isAbstractType(inner) ? pick(info.schema.getPossibleTypes(inner), seed) : inner;
  return { __typename: object.name, seed } satisfies Mocked;
}

function failure(seed: number, { fieldName }: GraphQLResolveInfo): GraphQLError {
  return new GraphQLError(`${fieldName} failed with ${seed % 1000}: "é"`, {
    extensions: pick<Record<string, unknown>>(
      [
        {},
        { code: 'FORBIDDEN' },
        { code: 'X', hint: { deep: [1, null, 'a'] } },
        { seed: seed / 7 },
      ],
      seed,
    ),
  });
}

function leaf(type: GraphQLLeafType, seed: number, { customScalars }: Required<Mix>): unknown {
  if (isEnumType(type)) return pick(type.getValues(), seed).value;
  return pick(VALUES[type.name] ?? customScalars, seed);
}

const TEXTS = [
  '',
  'a',
  'Ada',
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
  7,
  -0.5,
  [],
  {},
  [1, [null, { a: [] }], 'x'],
  JSON.parse('{"b":{"d":null,"c":[true]},"a":1,"then":"x","toJSON":1}'),
  '2026-01-05T00:00:00Z',
];

/** Values of custom scalars with integers that JavaScript cannot represent. */
export const BEYOND_JAVASCRIPT: readonly unknown[] = [
  new Verbatim('12345678901234567890'),
  new Verbatim('{"b":[-98765432109876543210],"a":1}'),
];

function pick<T>(from: readonly T[], seed: number): T {
  return from[hash(`${seed}?`) % from.length]!;
}

function oneIn(count: number, seed: number, what: string): boolean {
  return count > 0 && hash(`${seed}${what}`) % count === 0;
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
