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
  type DirectiveLocation,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';

interface RandomOperation {
  readonly query: string;
  readonly variables: Record<string, unknown>;
}

/** A random selection set, and what it needs in its operation. */
interface RandomSelection {
  readonly selection: string;
  readonly fragments: readonly string[];
  /** For example `$v0: Int`. */
  readonly definitions: readonly string[];
  readonly variables: Record<string, unknown>;
}

/** Values for custom scalars, and for arguments where a random value would hardly ever match. */
interface ArgumentHints {
  scalar(name: string, g: GeneratorValue): unknown;
}

/** A random document with one operation or several. */
interface RandomDocument extends RandomOperation {
  /** Which one to execute; undefined if there is only one. */
  readonly operationName: string | undefined;
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
  extent: Extent = {},
): RandomOperation {
  const root = randomSelection(schema, schema.getQueryType()!, g, hints, extent);
  const { selection, fragments, definitions, variables } = root;
  const head = definitions.length > 0 ? `query Random(${definitions.join(', ')})` : 'query Random';
  return { query: [`${head} ${selection}`, ...fragments].join('\n'), variables };
}

/**
 * A random document: as `randomOperation`, and mutations, fragments at the root, fragments used again, defaults of
 * variables, further operations that are not executed, and the schema's own directives wherever it allows them.
 */
export function randomDocument(
  schema: GraphQLSchema,
  g: GeneratorValue,
  hints: ArgumentHints,
): RandomDocument {
  const chance = (percent: number) => g(fc.nat, { max: 99 }) < percent;
  const operations = Array.from({ length: chance(15) ? 2 : 1 }, (_, index) => {
    const mutation = chance(20) ? schema.getMutationType() : undefined;
    const root = mutation ?? schema.getQueryType()!;
    const { selection, fragments, definitions, variables, directives } = randomSelection(
      schema,
      root,
      g,
      hints,
      { anything: true, names: index === 0 ? '' : 'z' },
    );
    const kind = mutation ? 'mutation' : 'query';
    const name = `Random${index}`;
    const declared = definitions.length > 0 ? `(${definitions.join(', ')})` : '';
    return {
      name,
      text: [`${kind} ${name}${declared}${directives} ${selection}`, ...fragments],
      variables,
    };
  });
  const [first] = operations;
  return {
    query: operations
      .toReversed()
      .flatMap(({ text }) => text)
      .join('\n'),
    variables: first!.variables,
    operationName: operations.length > 1 || chance(30) ? first!.name : undefined,
  };
}

/** How much of the language a selection uses. */
interface Extent {
  /** Fragments at the root and fragments used again, the schema's directives, defaults of variables. */
  readonly anything?: boolean;
  /** Put before the names of fragments and variables. */
  readonly names?: string;
}

function randomSelection(
  schema: GraphQLSchema,
  rootType: GraphQLCompositeType,
  g: GeneratorValue,
  hints: ArgumentHints,
  { anything = false, names = '' }: Extent = {},
): RandomSelection & { readonly directives: string } {
  const variables: Record<string, unknown> = {};
  const definitions: string[] = [];
  const fragments: string[] = [];
  const named: { readonly name: string; readonly on: GraphQLCompositeType }[] = [];
  const chance = (percent: number) => g(fc.nat, { max: 99 }) < percent;
  const pick = <T>(from: readonly T[]): T => from[g(fc.nat, { max: from.length - 1 })]!;

  const isMutation = rootType === schema.getMutationType();
  const isRoot = rootType === schema.getQueryType() || isMutation;
  const root = selectionSet(rootType, isRoot ? 0 : 2);
  const directives = isRoot ? ownDirectives(isMutation ? 'MUTATION' : 'QUERY') : '';
  return { selection: root, fragments, definitions, variables, directives };

  function selectionSet(type: GraphQLCompositeType, depth: number): string {
    const count = 1 + g(fc.nat, { max: depth < 2 ? 2 : 3 });
    const selections = Array.from({ length: count }, () => selection(type, depth));
    return `{ ${selections.join(' ')} }`;
  }

  function selection(type: GraphQLCompositeType, depth: number): string {
    if (chance(8)) return `${chance(50) ? `t${g(fc.nat, { max: 2 })}: ` : ''}__typename`;
    const spreads = isAbstractType(type) ? 50 : anything ? 14 : 8;
    if (chance(spreads) && (depth > 0 || anything)) return fragment(type, depth);
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
    // Two fields of one name with other arguments would conflict; so would some types under a shared alias.
    const alias = args.length > 0 || chance(30) ? `a${g(fc.nat, { max: 400 })}: ` : '';
    const call = args.length > 0 ? `${field.name}(${args.join(', ')})` : field.name;
    const below = isCompositeType(type) ? ` ${selectionSet(type, depth + 1)}` : '';
    return `${alias}${call}${directive('FIELD')}${below}`;
  }

  function fragment(type: GraphQLCompositeType, depth: number): string {
    const possible = isAbstractType(type)
      ? schema.getPossibleTypes(type)
      : [type as GraphQLObjectType];
    const interfaces = [...new Set(possible.flatMap((object) => object.getInterfaces()))];
    const on =
      interfaces.length > 0 && chance(20)
        ? pick(interfaces)
        : isAbstractType(type) && chance(80)
          ? pick(possible)
          : type;
    const again = named.filter(({ on: other }) => other === on);
    if (anything && again.length > 0 && chance(40)) {
      return `...${pick(again).name}${directive('FRAGMENT_SPREAD')}`;
    }
    const body = selectionSet(on, depth);
    const condition = on !== type || chance(80) ? ` on ${on.name}` : '';
    if (chance(50)) return `...${condition}${directive('INLINE_FRAGMENT')} ${body}`;
    const name = `F${names}${fragments.length}`;
    const custom = ownDirectives('FRAGMENT_DEFINITION');
    fragments.push(`fragment ${name} on ${on.name}${custom} ${body}`);
    named.push({ name, on });
    return `...${name}${directive('FRAGMENT_SPREAD')}`;
  }

  function directive(location: `${DirectiveLocation}`): string {
    const custom = ownDirectives(location);
    if (!chance(8)) return custom;
    const name = pick(['skip', 'include']);
    const value = chance(30);
    return `${custom} @${name}(if: ${chance(50) ? variable('Boolean!', value) : value})`;
  }

  /** The schema's own directives that are allowed here; `@stream` belongs to the gateway, and `@defer` is not served. */
  function ownDirectives(location: `${DirectiveLocation}`): string {
    if (!anything) return '';
    const allowed = schema
      .getDirectives()
      .filter(({ name }) => !['skip', 'include', 'defer', 'stream'].includes(name))
      .filter(({ locations }) => (locations as readonly string[]).includes(location));
    const constant = location === 'FRAGMENT_DEFINITION';
    const used = allowed
      .filter(() => chance(30))
      .map(({ name, args: all }) => {
        const args = all.flatMap((arg) =>
          isRequiredArgument(arg) || chance(60)
            ? [
                `${arg.name}: ${constant ? literal(arg.type, inputValue(arg.type, 0)) : argument(arg.type)}`,
              ]
            : [],
        );
        return ` @${name}${argumentList(args)}`;
      });
    return used.join('');
  }

  function argument(type: GraphQLInputType): string {
    const value = inputValue(type, 0);
    return chance(40) ? variable(String(type), value, literal(type, value)) : literal(type, value);
  }

  function variable(type: string, value: unknown, literally?: string): string {
    const name = `v${names}${definitions.length}`;
    const byDefault = anything && literally !== undefined && literally !== 'null' && chance(20);
    definitions.push(`$${name}: ${type}${byDefault ? ` = ${literally}` : ''}`);
    if (!byDefault || chance(30)) variables[name] = value;
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
        const field = pick(fields);
        return { [field.name]: inputValue(field.type, 9) };
      }
      const chosen = fields.filter(
        (field) => isNonNullType(field.type) || (depth < 2 && chance(40)),
      );
      return Object.fromEntries(
        chosen.map(({ name, type: inner }) => [name, inputValue(inner, depth + 1)]),
      );
    }
    return hints.scalar(getNamedType(type).name, g);
  }
}

function argumentList(args: readonly string[]): string {
  return args.length > 0 ? `(${args.join(', ')})` : '';
}

function literal(type: GraphQLInputType, value: unknown): string {
  if (value === null) return 'null';
  if (isNonNullType(type)) return literal(type.ofType, value);
  if (isListType(type)) {
    return `[${(value as unknown[]).map((item) => literal(type.ofType, item)).join(', ')}]`;
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
