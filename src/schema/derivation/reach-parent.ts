import {
  getNamedType,
  getNullableType,
  isAbstractType,
  isInterfaceType,
  isIntrospectionType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';

/** How the parent of a nested list is asked for again, when its further pages are wanted. */
export type Reach =
  | { readonly kind: 'id'; readonly field: string; readonly argument: GraphQLArgument }
  | {
      readonly kind: 'path';
      readonly fields: readonly string[];
      /** Whether the parents have ids, to tell the one at the path from others of its type. */
      readonly hasId: boolean;
    };

type AnyField = GraphQLField<unknown, unknown>;

/** What the operator has said of a type: how its records are found by their ids, and what is made of its lists. */
export interface TypeOverride {
  /** The root field that gives one by its id; null: none does. */
  readonly byId?: string | null | undefined;
  /** The list of the root that they are looked for in; null: none. */
  readonly list?: string | null | undefined;
  /** What the types of its connections are called. */
  readonly connection?: string | undefined;
  readonly edge?: string | undefined;
}

export type TypeOverrides = ReadonlyMap<string, TypeOverride>;

/**
 * How a parent can be reached again; why not, where it cannot.
 *
 * 1. By a root field that gives its type and requires `id` alone, of the type of its own `id`. Of several,
 *    the one named like the type, then the shortest name, then the first of the alphabet.
 * 2. By the shortest path from the root, then the first of the alphabet, over fields without required
 *    arguments that give objects and no lists. Where another object of the type may be, ids tell.
 */
export function reachParent(
  schema: GraphQLSchema,
  parent: GraphQLObjectType,
  overrides: TypeOverrides = new Map(),
): Reach | string {
  return byIdField(schema, parent, overrides) ?? byPath(schema, parent) ?? whyNot(schema, parent);
}

/** For people. */
export function describeReach(reach: Reach): string {
  if (reach.kind === 'id') return `${reach.field}(${reach.argument.name}: …)`;
  const path = reach.fields.join(' { ') + ' }'.repeat(reach.fields.length - 1);
  return reach.hasId ? `${path}, where that one has the same id` : path;
}

/** The `id` of a type, if it can be asked for without arguments. */
export function idOf(type: GraphQLObjectType): AnyField | undefined {
  const id = type.getFields()['id'];
  const isPlain = id && isLeafType(getNullableType(id.type)) && !id.args.some(isRequiredArgument);
  return isPlain ? id : undefined;
}

/** The argument of a field that takes an id: `id` if nothing else is required, or the only required one. */
export function idArgument(field: AnyField): GraphQLArgument | undefined {
  const [required, ...more] = field.args.filter(isRequiredArgument);
  const argument = required ?? field.args.find(({ name }) => name === 'id');
  return more.length === 0 && argument && isLeafType(getNullableType(argument.type))
    ? argument
    : undefined;
}

/** The root field that gives an object of the type by its id. */
export function byIdField(
  schema: GraphQLSchema,
  parent: GraphQLObjectType,
  overrides: TypeOverrides,
): Extract<Reach, { kind: 'id' }> | undefined {
  if (!idOf(parent)) return undefined;
  const fields = schema.getQueryType()?.getFields() ?? {};
  const named = overrides.get(parent.name)?.byId;
  if (named === null) return undefined;
  const field =
    named === undefined ? fieldsById(schema, parent).toSorted(byRank(parent))[0] : fields[named];
  const argument = field && idArgument(field);
  return argument && { kind: 'id', field: field.name, argument };
}

function fieldsById(schema: GraphQLSchema, parent: GraphQLObjectType): AnyField[] {
  const id = getNullableType(idOf(parent)?.type);
  return rootFields(schema).filter((field) => {
    const required = field.args.filter(isRequiredArgument);
    const [argument] = required;
    return (
      getNullableType(field.type) === parent &&
      required.length === 1 &&
      argument?.name === 'id' &&
      getNullableType(argument.type) === id
    );
  });
}

function byRank(parent: GraphQLObjectType) {
  const own = parent.name.charAt(0).toLowerCase() + parent.name.slice(1);
  return (a: AnyField, b: AnyField) =>
    Number(b.name === own) - Number(a.name === own) ||
    a.name.length - b.name.length ||
    (a.name < b.name ? -1 : 1);
}

function byPath(schema: GraphQLSchema, parent: GraphQLObjectType): Reach | undefined {
  const way = shortestWay(schema, parent);
  if (!way) return undefined;
  const hasId = idOf(parent) !== undefined;
  if (!hasId && !way.every((field) => isOnlyWay(schema, field))) return undefined;
  return { kind: 'path', fields: way.map(({ name }) => name), hasId };
}

/** Breadth first, each level in the order of the alphabet. */
function shortestWay(schema: GraphQLSchema, target: GraphQLObjectType): AnyField[] | undefined {
  const root = schema.getQueryType();
  const seen = new Set<unknown>([root]);
  let level: { type: GraphQLObjectType; way: AnyField[] }[] = root ? [{ type: root, way: [] }] : [];
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { type, way } of level) {
      const fields = Object.values(type.getFields()).toSorted((a, b) => (a.name < b.name ? -1 : 1));
      for (const field of fields) {
        const inner = getNullableType(field.type);
        if (!isObjectType(inner) || seen.has(inner) || field.args.some(isRequiredArgument)) {
          continue;
        }
        if (inner === target) return [...way, field];
        seen.add(inner);
        next.push({ type: inner, way: [...way, field] });
      }
    }
    level = next;
  }
  return undefined;
}

/** Whether the object that the field gives is the only one of its type that can ever be met. */
function isOnlyWay(schema: GraphQLSchema, field: AnyField): boolean {
  const type = getNullableType(field.type) as GraphQLObjectType;
  return field.args.length === 0 && waysTo(schema, type).length === 1;
}

function waysTo(schema: GraphQLSchema, type: GraphQLObjectType): string[] {
  return Object.values(schema.getTypeMap()).flatMap((holder) =>
    (isObjectType(holder) || isInterfaceType(holder)) && !isIntrospectionType(holder)
      ? Object.values(holder.getFields())
          .filter((field) => {
            const named = getNamedType(field.type);
            return named === type || (isAbstractType(named) && schema.isSubType(named, type));
          })
          .map((field) => `${holder.name}.${field.name}`)
      : [],
  );
}

function whyNot(schema: GraphQLSchema, parent: GraphQLObjectType): string {
  const { name } = parent;
  const start = `further pages cannot be asked, since a ${name} cannot be reached again: `;
  const way = shortestWay(schema, parent);
  if (way) {
    const path = way.map((field) => field.name).join('.');
    return (
      `${start}the path ${path} leads to one, but others are met elsewhere ` +
      `(${waysTo(schema, parent).join(', ')}), and without a plain field id they cannot be told apart.`
    );
  }
  const id = idOf(parent);
  if (!id)
    return `${start}it has no plain field id, and no path from the root without a list leads to it.`;
  const own = name.charAt(0).toLowerCase() + name.slice(1);
  const near = rootFields(schema).find((field) => getNullableType(field.type) === parent);
  return (
    `${start}no root field gives it by its id alone (like ${own}(id: ${String(getNullableType(id.type))}!): ${name}), ` +
    `and no path from the root without a list leads to it.` +
    (near && idArgument(near)
      ? ` If ${schema.getQueryType()!.name}.${near.name} takes its id, say so in adapters.json: "types": { "${name}": { "byId": "${near.name}" } }.`
      : '')
  );
}

function rootFields(schema: GraphQLSchema): AnyField[] {
  return Object.values(schema.getQueryType()?.getFields() ?? {});
}
