import {
  getNamedType,
  getNullableType,
  isAbstractType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { idOf, typesWithFields, type ByIdField, type PathStep, type Reach } from '../derived.ts';
import { objectIn, objectsIn, recordIn, resultOfRecord } from './lists.ts';
import type { TypeOverrides } from './overrides.ts';

type AnyField = GraphQLField<unknown, unknown>;

/**
 * Decides how a parent is requested again; returns the reason, as text, if it cannot be.
 *
 * 1. By a root field that returns its type and requires only `id`, of the same type as its own `id`. The field may return
 *    a union or interface in which the type is the record (`resultOfRecord`). Of several such fields: one that
 *    returns the type itself, then the one named like the type, then the shortest name, then the first in the alphabet.
 * 2. By the shortest path from the root, then the first in the alphabet, through fields without required arguments
 *    that return objects, not lists. A field may return a result in which one type is the object (`objectIn`).
 *    If the path may lead to another object of the type, ids distinguish them.
 */
export function reachParent(
  schema: GraphQLSchema,
  parent: GraphQLObjectType,
  overrides: TypeOverrides,
): Reach | string {
  return byIdField(schema, parent, overrides) ?? byPath(schema, parent) ?? whyNot(schema, parent);
}

/** A text for `schema explain`. */
export function describeReach(reach: Reach): string {
  if (reach.kind === 'id') return `${reach.field}(${reach.argument.name}: …)`;
  const path =
    reach.steps.map(({ field }) => field).join(' { ') + ' }'.repeat(reach.steps.length - 1);
  return reach.hasId ? `${path}, if it has the same id` : path;
}

/** The argument of a field that takes an id: the only required argument, or `id` if none is required. */
export function idArgument(field: AnyField): GraphQLArgument | undefined {
  const [required, ...more] = field.args.filter(isRequiredArgument);
  const argument = required ?? field.args.find(({ name }) => name === 'id');
  return more.length === 0 && argument && isLeafType(getNullableType(argument.type))
    ? argument
    : undefined;
}

/** The root field that returns an object of the type by its id, itself or as a result. */
export function byIdField(
  schema: GraphQLSchema,
  parent: GraphQLObjectType,
  overrides: TypeOverrides,
): ByIdField | undefined {
  if (!idOf(parent)) return undefined;
  const fields = schema.getQueryType()?.getFields() ?? {};
  const named = overrides.get(parent.name)?.byId;
  if (named === null) return undefined;
  const field =
    named === undefined ? fieldsById(schema, parent).toSorted(byRank(parent))[0] : fields[named];
  const argument = field && idArgument(field);
  if (!argument) return undefined;
  const result = resultOfRecord(schema, field.type, parent);
  return { kind: 'id', field: field.name, argument, result };
}

function fieldsById(schema: GraphQLSchema, parent: GraphQLObjectType): AnyField[] {
  const id = getNullableType(idOf(parent)?.type);
  return rootFields(schema).filter((field) => {
    const required = field.args.filter(isRequiredArgument);
    const [argument] = required;
    return (
      required.length === 1 &&
      argument?.name === 'id' &&
      getNullableType(argument.type) === id &&
      (getNullableType(field.type) === parent || recordIn(schema, field.type) === parent)
    );
  });
}

function byRank(parent: GraphQLObjectType) {
  const typeName = uncapitalized(parent.name);
  const isItself = ({ type }: AnyField) => Number(getNullableType(type) === parent);
  return (a: AnyField, b: AnyField) =>
    isItself(b) - isItself(a) ||
    Number(b.name === typeName) - Number(a.name === typeName) ||
    a.name.length - b.name.length ||
    (a.name < b.name ? -1 : 1);
}

function byPath(schema: GraphQLSchema, parent: GraphQLObjectType): Reach | undefined {
  const way = shortestWay(schema, parent);
  if (!way) return undefined;
  const hasId = idOf(parent) !== undefined;
  if (!hasId && !way.every((field) => isOnlyWay(schema, field))) return undefined;
  const steps = way.map((field): PathStep => {
    const object = objectOf(schema, field)!;
    return { field: field.name, result: resultOfRecord(schema, field.type, object) };
  });
  return { kind: 'path', steps, hasId };
}

/** The object that a field returns, itself or as a result. */
function objectOf(schema: GraphQLSchema, { type }: AnyField): GraphQLObjectType | undefined {
  const returned = getNullableType(type);
  return isObjectType(returned) ? returned : objectIn(schema, returned);
}

/**
 * Searches breadth first, each level in alphabetical order.
 *
 * @param objectsOf the objects through which a path leads that a field returns
 */
function shortestWay(
  schema: GraphQLSchema,
  target: GraphQLObjectType,
  objectsOf = (field: AnyField) => {
    const object = objectOf(schema, field);
    return object ? [object] : [];
  },
): AnyField[] | undefined {
  const root = schema.getQueryType();
  const seen = new Set<unknown>([root]);
  let level: { type: GraphQLObjectType; way: AnyField[] }[] = root ? [{ type: root, way: [] }] : [];
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { type, way } of level) {
      const fields = Object.values(type.getFields()).toSorted((a, b) => (a.name < b.name ? -1 : 1));
      for (const field of fields) {
        if (field.args.some(isRequiredArgument)) continue;
        for (const inner of objectsOf(field)) {
          if (seen.has(inner)) continue;
          if (inner === target) return [...way, field];
          seen.add(inner);
          next.push({ type: inner, way: [...way, field] });
        }
      }
    }
    level = next;
  }
  return undefined;
}

/** Whether no other field, and no other argument, can return another object of this field's type. */
function isOnlyWay(schema: GraphQLSchema, field: AnyField): boolean {
  const type = objectOf(schema, field)!;
  return field.args.length === 0 && waysTo(schema, type).length === 1;
}

function waysTo(schema: GraphQLSchema, type: GraphQLObjectType): string[] {
  return typesWithFields(schema).flatMap((holder) =>
    Object.values(holder.getFields())
      .filter((field) => {
        const named = getNamedType(field.type);
        return named === type || (isAbstractType(named) && schema.isSubType(named, type));
      })
      .map((field) => `${holder.name}.${field.name}`),
  );
}

function whyNot(schema: GraphQLSchema, parent: GraphQLObjectType): string {
  const { name } = parent;
  const start = `further pages cannot be requested, because a ${name} cannot be reached again: `;
  const way = shortestWay(schema, parent);
  if (way) {
    const path = way.map((field) => field.name).join('.');
    return (
      `${start}the path ${path} leads to one, but other fields return others ` +
      `(${waysTo(schema, parent).join(', ')}), and without a plain field id they cannot be distinguished.`
    );
  }
  const unsure = wayOfSeveral(schema, parent);
  if (unsure) return start + unsure;
  const id = idOf(parent);
  if (!id) {
    return `${start}it has no plain field id, and no path from the root without a list leads to it.`;
  }
  const near = rootFields(schema).find((field) => canReturn(schema, field, parent));
  return (
    `${start}no root field returns it by its id alone (like ${uncapitalized(name)}(id: ${String(getNullableType(id.type))}!): ${name}), ` +
    `and no path from the root without a list leads to it.` +
    (near && idArgument(near)
      ? ` If ${schema.getQueryType()!.name}.${near.name} takes its id, write this in adapters.json: "types": { "${name}": { "byId": "${near.name}" } }.`
      : '')
  );
}

/** Why a path through a result is not taken. */
function wayOfSeveral(schema: GraphQLSchema, parent: GraphQLObjectType): string | undefined {
  const objects = ({ type }: AnyField) => objectsIn(schema, type);
  const way = shortestWay(schema, parent, (field) => {
    const object = objectOf(schema, field);
    return object ? [object] : objects(field);
  });
  const field = way?.find((step) => !objectOf(schema, step));
  if (!way || !field) return undefined;
  const path = way.map(({ name }) => name).join('.');
  const types = objects(field).map(({ name }) => name);
  return (
    `the path ${path} leads to one, but ${field.name} returns ${String(getNullableType(field.type))}, ` +
    `of which several types are no errors (${types.join(', ')}).`
  );
}

/** Whether adapters.json may name the field as one that returns the type, itself or as a result. */
export function canReturn(
  schema: GraphQLSchema,
  { type }: AnyField,
  record: GraphQLObjectType,
): boolean {
  return getNullableType(type) === record || resultOfRecord(schema, type, record) !== undefined;
}

function rootFields(schema: GraphQLSchema): AnyField[] {
  return Object.values(schema.getQueryType()?.getFields() ?? {});
}

function uncapitalized(name: string): string {
  return name.charAt(0).toLowerCase() + name.slice(1);
}
