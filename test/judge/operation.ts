import type { GeneratorValue } from 'fast-check';
import fc from 'fast-check';
import {
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  type DirectiveLocation,
  type GraphQLArgument,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLSchema,
} from 'graphql';
import type { Adapter, DerivedList } from '../../src/schema/derived.ts';
import type { ServedSchema } from '../../src/schema/served/served-schema.ts';
import { cursorOf } from './cursors.ts';

export interface Operation {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  /** Undefined if the document has only one operation. */
  readonly operationName?: string | undefined;
}

/** What random operations are made of. */
export interface Vocabulary {
  readonly served: Pick<ServedSchema, 'schema' | 'derived' | 'adapters' | 'entities'>;
  /** Whether there are also mutations. */
  readonly mutates?: boolean;
  /** Whether there are also the service's own directives, and operations that are not selected. */
  readonly isForwarded?: boolean;
  /** The coordinates of the fields that a company adds. `Query.own` is one, and every operation selects it. */
  readonly addedFields?: ReadonlySet<string>;
}

/** The vocabulary of a schema to which nothing is added. */
export function vocabularyOf(schema: GraphQLSchema): Vocabulary {
  const served = { schema, derived: [], adapters: [], entities: [] };
  return { served, isForwarded: true, mutates: true };
}

/** Where a selection is. */
interface Scope {
  readonly type: GraphQLCompositeType;
  readonly depth: number;
  /** About how many objects the selection is on. It bounds what an operation costs. */
  readonly parents: number;
  /** The fields that lead to the object, if it is only one and they have no variables. Cursors are taken from there. */
  readonly via: readonly string[] | undefined;
}

interface Argument {
  readonly arg: GraphQLArgument;
  readonly value: unknown;
}

const DEEPEST = 6;
/** Lists below records are asked for on no more records than this. */
const FEW = 10;
/** About how many records a list has that is read whole. */
const WHOLE = 80;

/**
 * Makes a random operation of the served schema: derived fields and those of the service, nested in each other, with
 * fragments, aliases, conditions and variables. Most are valid; the caller drops the others.
 */
export function randomOperation(world: Vocabulary, g: GeneratorValue): Operation {
  const first = oneOperation(world, g, '');
  if (!world.isForwarded || g(fc.nat, { max: 99 }) >= 15) return first;
  const other = oneOperation(world, g, 'z');
  return { ...first, query: `${other.query}\n${first.query}`, operationName: 'Random' };
}

/** @param mark a part of the names of the operation, its fragments and its variables */
function oneOperation(world: Vocabulary, g: GeneratorValue, mark: string): Operation {
  const { served, isForwarded = false, mutates = false, addedFields: added } = world;
  const { schema } = served;
  const derived = new Map(served.derived.map((each) => [`${each.parent}.${each.name}`, each]));
  const paged = new Map(served.adapters.map((each) => [`${each.parent}.${each.name}`, each]));
  const definitions: string[] = [];
  const variables: Record<string, unknown> = {};
  const fragments: { name: string; on: GraphQLCompositeType; text: string; scope: Scope }[] = [];
  const upTo = (max: number) => g(fc.nat, { max });
  const chance = (percent: number) => upTo(99) < percent;
  const pick = <T>(from: readonly T[]): T => from[upTo(from.length - 1)]!;
  // Some operations are those that the service itself understands.
  const usesDerived = chance(75);
  const mutation = mutates && chance(20) ? schema.getMutationType() : undefined;
  const root = mutation ?? schema.getQueryType()!;

  const body = selectionSet({ type: root, depth: 0, parents: 1, via: [] });
  const own = ownDirectives(mutation ? 'MUTATION' : 'QUERY');
  const declared = definitions.length > 0 ? `(${definitions.join(', ')})` : '';
  const head = `${mutation ? 'mutation' : 'query'} Random${mark}${declared}${own}`;
  return { query: [`${head} ${body}`, ...fragments.map(({ text }) => text)].join('\n'), variables };

  function selectionSet(scope: Scope): string {
    const count = 1 + upTo(scope.depth === 0 ? 2 : 3);
    const selections = Array.from({ length: count }, () => selection(scope));
    const isRoot = scope.type === schema.getQueryType();
    if (added && isRoot) selections.push('own');
    // The gateway answers it itself at the root, without an added field and without directives of fragments beside it.
    const isLocal = !added && !isForwarded && isRoot && chance(10);
    if (isLocal) selections.push(introspection(scope.type.name));
    return `{ ${selections.join(' ')} }`;
  }

  function introspection(type: string): string {
    const conditions = [condition(40), condition(40)];
    return pick([
      `type: __type(name: "${type}") { name${conditions[0]} kind${conditions[1]} }`,
      `none: __type(name: "None") { name${conditions[0]} }`,
      `__schema { t: __typename queryType { name${conditions[0]} } queryType { ... on __Type { kind${conditions[1]} } } }`,
    ]);
  }

  function selection(scope: Scope): string {
    const { type, depth } = scope;
    // The gateway answers it itself at the root, and does not send directives around nothing else.
    const hasName = !isForwarded || depth > 0;
    if (chance(8) && hasName)
      return `${chance(40) ? `${pick(KEYS)}: ` : ''}__typename${condition()}`;
    if (chance(isAbstractType(type) ? 50 : isForwarded ? 25 : depth === 0 ? 12 : 10))
      return fragment(scope);
    const fields = 'getFields' in type ? Object.values(type.getFields()) : [];
    const suitable = fields.filter((each) => isSuitable(scope, each));
    if (suitable.length === 0) return isAbstractType(type) ? fragment(scope) : '__typename';
    const ours = suitable.filter(({ name }) => {
      const coordinate = `${type.name}.${name}`;
      return derived.has(coordinate) || added?.has(coordinate);
    });
    return field(scope, pick(ours.length > 0 && chance(60) ? ours : suitable));
  }

  function isSuitable(
    { type, depth, parents }: Scope,
    { name, type: of }: GraphQLField<unknown, unknown>,
  ) {
    const coordinate = `${type.name}.${name}`;
    if (name === '_service') return false;
    if (!isCompositeType(getNamedType(of))) return true;
    if (depth >= DEEPEST || parents > WHOLE) return false;
    // The service is asked for what is below a field of its own, so the query type has only its fields there.
    const isOffered = depth === 0 || type !== schema.getQueryType();
    if (derived.has(coordinate)) return usesDerived && isOffered && parents <= FEW;
    return !paged.has(coordinate) || parents <= 2 * FEW;
  }

  function fragment(scope: Scope): string {
    const { type, parents } = scope;
    const possible = isAbstractType(type)
      ? schema.getPossibleTypes(type)
      : isObjectType(type)
        ? [type]
        : [];
    const interfaces = [...new Set(possible.flatMap((each) => each.getInterfaces()))];
    const on: GraphQLCompositeType =
      interfaces.length > 0 && chance(20)
        ? pick(interfaces)
        : isAbstractType(type) && chance(85)
          ? pick(possible)
          : type;
    const again = fragments.filter((each) => each.on === on && parents <= each.scope.parents);
    if (again.length > 0 && chance(50))
      return `...${pick(again).name}${directives('FRAGMENT_SPREAD')}`;
    const inner = { ...scope, type: on, depth: scope.depth + (isAbstractType(on) ? 1 : 0) };
    if (inner.depth > DEEPEST) return '__typename';
    if (chance(50)) {
      const via = on === type ? scope.via : scope.via && [...scope.via, `... on ${on.name}`];
      return `...${on !== type || chance(80) ? ` on ${on.name}` : ''}${directives('INLINE_FRAGMENT')} ${selectionSet({ ...inner, via })}`;
    }
    const text = selectionSet({ ...inner, via: undefined });
    const name = `F${mark}${fragments.length}`;
    const defined = `fragment ${name} on ${on.name}${ownDirectives('FRAGMENT_DEFINITION')}`;
    fragments.push({ name, on, text: `${defined} ${text}`, scope: inner });
    return `...${name}${directives('FRAGMENT_SPREAD')}`;
  }

  function field(
    scope: Scope,
    { name, type: of, args: all }: GraphQLField<unknown, unknown>,
  ): string {
    const type = getNamedType(of);
    const coordinate = `${scope.type.name}.${name}`;
    const { args, records } = argumentsOf(scope, coordinate, all);
    const isPlain = chance(60);
    const list = args.map(
      ({ arg, value }) =>
        `${arg.name}: ${isPlain ? literal(arg.type, value) : argument(arg, value)}`,
    );
    const call = `${name}${list.length > 0 ? `(${list.join(', ')})` : ''}`;
    const key = list.length > 0 ? chance(75) : chance(20);
    const others = 'getFields' in scope.type ? Object.keys(scope.type.getFields()) : [];
    const alias = key
      ? `${chance(25) && others.length > 0 ? pick(others) : chance(15) ? pick(KEYS) : `a${upTo(99)}`}: `
      : '';
    const keyed = `${alias}${call}`;
    if (!isCompositeType(type)) {
      const one = `${keyed}${directives('FIELD')}`;
      return chance(6) ? `${one} ${keyed}${directives('FIELD')}` : one;
    }
    // Their conditions are the gateway's own work.
    const percent = derived.has(coordinate) ? 30 : undefined;
    const inner = {
      type,
      depth: scope.depth + 1,
      parents: scope.parents * (records ?? (isListOf(of) ? 3 : 1)),
      via:
        scope.via && isPlain && records === undefined && !isListOf(of)
          ? [...scope.via, call]
          : undefined,
    };
    const inParts = isStreamed(scope, coordinate) && chance(50) ? ' @stream' : '';
    const one = `${keyed}${directives('FIELD', percent)}${inParts} ${selectionSet(inner)}`;
    return chance(12)
      ? `${one} ${keyed}${directives('FIELD', percent)} ${selectionSet(inner)}`
      : one;
  }

  /** Whether a client can ask for a list in parts. */
  function isStreamed({ depth }: Scope, coordinate: string): boolean {
    return depth === 0 && derived.get(coordinate)?.kind === 'all';
  }

  /** `records`: about how many records a list gives; undefined if it is none of those in pages. */
  function argumentsOf(
    scope: Scope,
    coordinate: string,
    all: readonly GraphQLArgument[],
  ): { args: Argument[]; records?: number } {
    const ours = derived.get(coordinate);
    if (ours?.kind === 'all') return drainArguments(scope, ours, all);
    if (ours?.kind === 'connection') return connectionArguments(scope, ours, all);
    if (ours?.kind === 'entities') {
      const count = 1 + upTo(4);
      const value = Array.from({ length: count }, () => representation());
      return { args: [{ arg: all[0]!, value }], records: count };
    }
    const list = paged.get(coordinate);
    if (list) return pageArguments(scope, list, all);
    return { args: all.flatMap((arg) => randomly(arg)) };
  }

  function drainArguments(scope: Scope, { adapter }: DerivedList, all: readonly GraphQLArgument[]) {
    const filters = filtersOf(adapter, all);
    const isWhole = scope.parents <= 3 && chance(30);
    const limit = isWhole ? WHOLE : upTo(chance(70) ? 5 : 40);
    const args = [...filters];
    add(args, all, 'limit', isWhole ? undefined : chance(1) ? -1 : limit);
    if (adapter.connection) add(args, all, 'after', cursor(scope, adapter, filters, 35));
    return { args: shuffled(args), records: Math.max(1, Math.min(limit, WHOLE)) };
  }

  function connectionArguments(
    scope: Scope,
    { adapter }: DerivedList,
    all: readonly GraphQLArgument[],
  ) {
    const filters = filtersOf(adapter, all);
    const size = upTo(chance(70) || scope.parents > 2 ? 6 : 70);
    const isForward = chance(60);
    const args = [...filters];
    if (!isForward || chance(85))
      add(args, all, isForward ? 'first' : 'last', chance(1) ? -1 : size);
    if (chance(2)) add(args, all, isForward ? 'last' : 'first', pick([null, 2]));
    add(args, all, isForward ? 'after' : 'before', cursor(scope, adapter, filters, 50));
    if (chance(4))
      add(args, all, isForward ? 'before' : 'after', cursor(scope, adapter, filters, 100));
    return {
      args: shuffled(args),
      records: args.length === filters.length ? 50 : Math.max(1, size),
    };
  }

  function pageArguments(scope: Scope, adapter: Adapter, all: readonly GraphQLArgument[]) {
    const args = filtersOf(adapter, all);
    const size = chance(2) ? 0 : 1 + upTo(chance(75) ? 5 : 60);
    const isSized = scope.parents > 1 || chance(85) || isRequiredArgument(adapter.first);
    add(args, all, adapter.first.name, isSized ? size : undefined);
    const given = [...args];
    const after =
      adapter.parent === root.name && !adapter.result && chance(25)
        ? cursorOf({ via: [], field: adapter.name, args: literals(given), at: 'page' })
        : chance(2)
          ? 'nowhere'
          : undefined;
    add(args, all, adapter.after.name, after);
    return { args: shuffled(args), records: isSized ? Math.max(1, size) : 50 };
  }

  /** A cursor of the same list with the same filters, taken from an earlier answer; now and then any other text. */
  function cursor(
    scope: Scope,
    { connection, parent }: Adapter,
    filters: readonly Argument[],
    percent: number,
  ) {
    const { field: name } = connection!;
    if (!chance(percent)) return chance(3) ? null : undefined;
    if (chance(2)) return pick(['', 'nowhere', 'bm93aGVyZQ']);
    const isRoot = parent === root.name;
    if (!isRoot && (scope.via === undefined || scope.via.length === 0)) return undefined;
    const via = isRoot ? [] : scope.via!;
    const args = literals(filters);
    const at = pick(['edge', 'edge', 'edge', 'startCursor', 'endCursor'] as const);
    const sizes = ['first: 100', `first: ${1 + upTo(5)}`, `last: ${1 + upTo(9)}`];
    const earlier = chance(25)
      ? [
          `after: ${JSON.stringify(cursorOf({ via, field: name, args: [...args, 'first: 60'], at: upTo(20) }))}`,
          `first: ${1 + upTo(5)}`,
        ]
      : [pick(sizes)];
    return cursorOf({
      via,
      field: name,
      args: [...args, ...earlier],
      at: at === 'edge' ? upTo(99) : at,
    });
  }

  function filtersOf({ filters }: Adapter, all: readonly GraphQLArgument[]): Argument[] {
    const names = new Set(filters.map(({ name }) => name));
    return all
      .filter(({ name }) => names.has(name))
      .flatMap((arg) =>
        isRequiredArgument(arg) || chance(15) ? [{ arg, value: input(arg.type) }] : [],
      );
  }

  function randomly(arg: GraphQLArgument): Argument[] {
    if (!isRequiredArgument(arg) && !chance(35)) return [];
    return [
      { arg, value: arg.name === 'id' ? idOf(getNamedType(arg.type).name) : input(arg.type) },
    ];
  }

  function representation(): unknown {
    const entity = pick(served.entities);
    if (chance(3))
      return pick([{ __typename: 'Nobody', id: 1 }, { id: 1 }, { __typename: entity.type.name }]);
    const id = idOf(String(entity.idType));
    return { __typename: entity.type.name, id: chance(50) ? String(id) : id };
  }

  function idOf(type: string): string | number {
    const id = pick(IDS);
    return type === 'Int' ? id : pick([String(id), id < 6 ? `r${id}` : String(id)]);
  }

  function directives(location: `${DirectiveLocation}`, percent?: number): string {
    return ownDirectives(location) + condition(percent);
  }

  /** Of the service. @stream belongs to the gateway, which does not serve @defer. */
  function ownDirectives(location: `${DirectiveLocation}`): string {
    if (!isForwarded) return '';
    const isConstant = location.endsWith('DEFINITION');
    return schema
      .getDirectives()
      .filter(({ name }) => !['skip', 'include', 'defer', 'stream'].includes(name))
      .filter(({ locations }) => (locations as readonly string[]).includes(location))
      .filter(() => chance(30))
      .map(({ name, args: all }) => {
        const args = all
          .filter((arg) => isRequiredArgument(arg) || chance(60))
          .map((arg) => {
            const value = input(arg.type);
            return `${arg.name}: ${isConstant ? literal(arg.type, value) : argument(arg, value)}`;
          });
        return ` @${name}${args.length > 0 ? `(${args.join(', ')})` : ''}`;
      })
      .join('');
  }

  function condition(percent = 9): string {
    if (!chance(percent)) return '';
    const isBoth = chance(10);
    const isIncluded = isBoth || chance(50);
    const include = isIncluded ? ` @include(if: ${truth(chance(65))})` : '';
    return isIncluded && !isBoth ? include : `${include} @skip(if: ${truth(chance(35))})`;
  }

  function truth(value: boolean): string {
    if (chance(50)) return String(value);
    const name = `c${mark}${definitions.length}`;
    const [type, sent] = pick([
      ['Boolean!', value],
      [`Boolean! = ${value}`, undefined],
      [`Boolean = ${!value}`, value],
      [`Boolean = ${value}`, undefined],
    ] as const);
    definitions.push(`$${name}: ${type}`);
    if (sent !== undefined) variables[name] = sent;
    return `$${name}`;
  }

  function argument({ type }: GraphQLArgument, value: unknown): string {
    if (!chance(60)) return literal(type, value);
    const name = `v${mark}${definitions.length}`;
    const isByDefault = value !== null && chance(25);
    const initial = isByDefault ? ` = ${literal(type, value)}` : '';
    definitions.push(`$${name}: ${String(type)}${initial}${ownDirectives('VARIABLE_DEFINITION')}`);
    if (!isByDefault) variables[name] = value;
    return `$${name}`;
  }

  function input(type: GraphQLInputType, depth = 0): unknown {
    if (isNonNullType(type)) return input(type.ofType, depth) ?? input(type, depth + 1);
    if (chance(8) && depth < 3) return null;
    if (isListType(type)) return Array.from({ length: upTo(2) }, () => input(type.ofType, depth));
    if (isEnumType(type)) return pick(type.getValues()).name;
    if (!isInputObjectType(type)) return scalar(type.name);
    const fields = Object.values(type.getFields());
    const chosen = type.isOneOf
      ? [pick(fields)]
      : fields.filter((each) => isNonNullType(each.type) || (depth < 2 && chance(40)));
    return Object.fromEntries(
      chosen.map((each) => [each.name, input(each.type, type.isOneOf ? 9 : depth + 1)]),
    );
  }

  function scalar(name: string): unknown {
    switch (name) {
      case 'Int':
        return g(fc.integer, { min: -1, max: pick([8, 120]) });
      case 'Float':
        return g(fc.integer, { min: -10, max: 10 }) / 4;
      case 'Boolean':
        return g(fc.boolean);
      default:
        return pick(TEXTS);
    }
  }

  function shuffled<T>(all: readonly T[]): T[] {
    return chance(50) ? [...all] : all.toReversed();
  }
}

/** Of records of every service of the judge, of no record, and of a record that nobody may see. */
const IDS = [1, 2, 3, 4, 6, 14, 37, 97, 113, 9_999, 2_000_000_001];

const TEXTS = ['Title 3', 'Agency 2', '10', '7', '', 'é"\\', 'a', '2026-01-05T00:00:00Z'];

/** Response keys that mean something to the gateway itself. */
const KEYS = [
  'id',
  'items',
  'nodes',
  'edges',
  'node',
  'cursor',
  'pageInfo',
  'data',
  '__typename_',
  'then',
  'constructor',
];

function add(
  args: Argument[],
  all: readonly GraphQLArgument[],
  name: string,
  value: unknown,
): void {
  const arg = all.find((each) => each.name === name);
  if (arg && value !== undefined) args.push({ arg, value });
}

function isListOf(type: GraphQLField<unknown, unknown>['type']): boolean {
  return isListType(getNullableType(type));
}

function literals(args: readonly Argument[]): string[] {
  return args.map(({ arg, value }) => `${arg.name}: ${literal(arg.type, value)}`);
}

function literal(type: GraphQLInputType, value: unknown): string {
  if (value === null) return 'null';
  if (isNonNullType(type)) return literal(type.ofType, value);
  if (Array.isArray(value)) {
    const inner = isListType(type) ? type.ofType : type;
    return `[${value.map((item) => literal(inner, item)).join(', ')}]`;
  }
  if (isEnumType(type)) return value as string;
  if (typeof value !== 'object') return JSON.stringify(value);
  const fields = isInputObjectType(type) ? type.getFields() : {};
  const members = Object.entries(value).map(
    ([name, inner]) =>
      `${name}: ${fields[name] ? literal(fields[name].type, inner) : JSON.stringify(inner)}`,
  );
  return `{ ${members.join(', ')} }`;
}
