import type { GeneratorValue } from 'fast-check';
import fc from 'fast-check';
import {
  getNamedType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isRequiredArgument,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLSchema,
} from 'graphql';

export interface RandomOperation {
  readonly query: string;
  readonly variables: Record<string, unknown>;
}

/** A random selection set, and what has to stand around it in an operation. */
export interface RandomSelection {
  readonly selection: string;
  readonly fragments: readonly string[];
  /** For example `$v0: Int`. */
  readonly definitions: readonly string[];
  readonly variables: Record<string, unknown>;
}

/** Values for custom scalars and for arguments where any value would hardly ever hit something. */
export interface ArgumentHints {
  scalar(name: string, g: GeneratorValue): unknown;
}

const MAX_DEPTH = 4;

/**
 * A random operation on a schema: aliases, arguments as literals and as variables, fragments of both
 * kinds, @skip and @include, __typename anywhere. Nearly always valid; the caller drops what is not.
 */
export function randomOperation(
  schema: GraphQLSchema,
  g: GeneratorValue,
  hints: ArgumentHints,
): RandomOperation {
  const root = randomSelection(schema, schema.getQueryType()!, g, hints);
  return operationAround(root, root.selection);
}

/** The operation whose root selection is `body`, with the fragments and variables of the selection in it. */
export function operationAround(
  { fragments, definitions, variables }: RandomSelection,
  body: string,
  more: readonly string[] = [],
): RandomOperation {
  const declared = [...definitions, ...more];
  const head = declared.length > 0 ? `query Random(${declared.join(', ')})` : 'query Random';
  return { query: [`${head} ${body}`, ...fragments].join('\n'), variables };
}

export function randomSelection(
  schema: GraphQLSchema,
  rootType: GraphQLCompositeType,
  g: GeneratorValue,
  hints: ArgumentHints,
): RandomSelection {
  const variables: Record<string, unknown> = {};
  const definitions: string[] = [];
  const fragments: string[] = [];
  const chance = (percent: number) => g(fc.nat, { max: 99 }) < percent;
  const pick = <T>(from: readonly T[]): T => from[g(fc.nat, { max: from.length - 1 })]!;

  const root = selectionSet(rootType, rootType === schema.getQueryType() ? 0 : 2);
  return { selection: root, fragments, definitions, variables };

  function selectionSet(type: GraphQLCompositeType, depth: number): string {
    const count = 1 + g(fc.nat, { max: depth < 2 ? 2 : 3 });
    const selections = Array.from({ length: count }, () => selection(type, depth));
    return `{ ${selections.join(' ')} }`;
  }

  function selection(type: GraphQLCompositeType, depth: number): string {
    if (chance(8)) return `${chance(50) ? `t${g(fc.nat, { max: 2 })}: ` : ''}__typename`;
    if (chance(isAbstractType(type) ? 50 : 8) && depth > 0) return fragment(type, depth);
    const fields = 'getFields' in type ? Object.values(type.getFields()) : [];
    const reachable = fields.filter(
      (field) => depth < MAX_DEPTH || isLeafType(getNamedType(field.type)),
    );
    return reachable.length > 0 ? fieldSelection(pick(reachable), depth) : '__typename';
  }

  function fieldSelection(field: GraphQLField<unknown, unknown>, depth: number): string {
    const args = field.args.flatMap((arg) =>
      isRequiredArgument(arg) || chance(35) ? [`${arg.name}: ${argument(arg.type)}`] : [],
    );
    const type = getNamedType(field.type);
    // Two fields of one name with other arguments would clash; so would some types under a shared alias.
    const alias = args.length > 0 || chance(30) ? `a${g(fc.nat, { max: 400 })}: ` : '';
    const call = args.length > 0 ? `${field.name}(${args.join(', ')})` : field.name;
    const below = isCompositeType(type) ? ` ${selectionSet(type, depth + 1)}` : '';
    return `${alias}${call}${directive()}${below}`;
  }

  function fragment(type: GraphQLCompositeType, depth: number): string {
    const on = isAbstractType(type) && chance(80) ? pick(schema.getPossibleTypes(type)) : type;
    const body = selectionSet(on, depth);
    const condition = on !== type || chance(80) ? ` on ${on.name}` : '';
    if (chance(50)) return `...${condition}${directive()} ${body}`;
    const name = `F${fragments.length}`;
    fragments.push(`fragment ${name} on ${on.name} ${body}`);
    return `...${name}${directive()}`;
  }

  function directive(): string {
    if (!chance(8)) return '';
    const name = pick(['skip', 'include']);
    const value = chance(30);
    return ` @${name}(if: ${chance(50) ? variable('Boolean!', value) : value})`;
  }

  function argument(type: GraphQLInputType): string {
    const value = inputValue(type, 0);
    return chance(40) ? variable(String(type), value) : literal(type, value);
  }

  function variable(type: string, value: unknown): string {
    const name = `v${definitions.length}`;
    definitions.push(`$${name}: ${type}`);
    variables[name] = value;
    return `$${name}`;
  }

  function inputValue(type: GraphQLInputType, depth: number): unknown {
    if (isNonNullType(type)) return inputValue(type.ofType, depth) ?? inputValue(type, depth + 1);
    if (chance(8) && depth < 3) return null;
    if (isListType(type)) {
      return Array.from({ length: g(fc.nat, { max: 2 }) }, () => inputValue(type.ofType, depth));
    }
    if (isEnumType(type)) return pick(type.getValues()).name;
    if (isInputObjectType(type)) {
      const fields = Object.values(type.getFields());
      if (type.isOneOf) {
        const one = pick(fields);
        return { [one.name]: inputValue(one.type, 9) };
      }
      const given = fields.filter(
        (field) => isNonNullType(field.type) || (depth < 2 && chance(40)),
      );
      return Object.fromEntries(
        given.map(({ name, type: inner }) => [name, inputValue(inner, depth + 1)]),
      );
    }
    return hints.scalar(getNamedType(type).name, g);
  }
}

function literal(type: GraphQLInputType, value: unknown): string {
  if (value === null) return 'null';
  if (isNonNullType(type)) return literal(type.ofType, value);
  if (isListType(type)) {
    return `[${(value as unknown[]).map((one) => literal(type.ofType, one)).join(', ')}]`;
  }
  if (isEnumType(type)) return value as string;
  if (isInputObjectType(type)) {
    const fields = type.getFields();
    const entries = Object.entries(value as object);
    return `{ ${entries.map(([name, inner]) => `${name}: ${literal(fields[name]!.type, inner)}`).join(', ')} }`;
  }
  return untyped(value);
}

function untyped(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(untyped).join(', ')}]`;
  const entries = Object.entries(value);
  return `{ ${entries.map(([name, inner]) => `${name}: ${untyped(inner)}`).join(', ')} }`;
}
