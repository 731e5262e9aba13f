import { isInterfaceType, isNonNullType, isObjectType, type GraphQLSchema } from 'graphql';
import type { FieldOverride } from './adapter-overrides.ts';
import type { PagedField } from './find-paged-fields.ts';
import type { Adapter } from './adapter.ts';
import type { RootNames } from './root-names.ts';

/**
 * Gives names to what is derived, none of them twice. A name that is taken is not derived, with a warning;
 * where the operator wrote it, that is a mistake.
 *
 * @param lists all that get adapters: they decide together what their connections are called
 */
export function derivedNames(
  schema: GraphQLSchema,
  lists: readonly PagedField[],
  names: RootNames,
) {
  const warnings: string[] = [];
  const mistakes: string[] = [];
  const fields = new Map<string, Set<string>>();
  // Of every name that the operator wrote, where.
  const written = new Map<string, string>();
  // Of every derived type the kind of record it holds: lists of one kind share it, others may not.
  const types = new Map<string, string>();
  const fieldsOf = (parent: string) => {
    const known = fields.get(parent) ?? fieldNames(schema, parent);
    fields.set(parent, known);
    return known;
  };

  const of = (parent: string, list: PagedField, override: FieldOverride) => {
    const taken: string[] = [];
    const freeField = (key: 'all' | 'connection', name: string) => {
      const said = override[key] !== undefined;
      const place = `fields.${parent}.${list.name}.${key}`;
      if (!fieldsOf(parent).has(name)) {
        fieldsOf(parent).add(name);
        if (said) written.set(`${parent}.${name}`, place);
        return true;
      }
      const writer = said ? place : written.get(`${parent}.${name}`);
      if (writer) mistakes.push(`${writer}: ${parent} has ${name} already. Write another name.`);
      else taken.push(`${parent}.${name} is not derived: there is a field of that name.`);
      return false;
    };
    const freeType = (name: string) => {
      const holds = types.get(name);
      if (!schema.getType(name) && (!holds || holds === String(list.recordType))) return true;
      taken.push(`The type ${name} is not derived: there is a type of that name.`);
      return false;
    };
    const isRoot = parent === schema.getQueryType()?.name;
    const plain = isRoot ? names.upstream(list.name) : list.name;
    const derived = (name: string) => (isRoot ? names.derived(name) : name);
    const all = {
      field: override.all ?? derived(`all${capitalised(plain)}`),
      ...stepAside(list, { limit: 'drainLimit' }),
      after: 'after',
    };
    const connection = {
      field: override.connection ?? derived(`${plain}Connection`),
      ...connectionTypes(list, lists, names),
      ...stepAside(list, { last: 'connectionLast', before: 'connectionBefore' }),
    };
    const hasAll = freeField('all', all.field);
    const hasConnection =
      freeType(connection.type) &&
      freeType(connection.edge) &&
      freeField('connection', connection.field);
    if (hasConnection) {
      types.set(connection.type, String(list.recordType));
      types.set(connection.edge, String(list.recordType));
    }
    warnings.push(...taken);
    const adapter: Adapter = {
      ...list,
      parent,
      all: hasAll ? all : undefined,
      connection: hasConnection ? connection : undefined,
    };
    return { adapter, taken };
  };
  return { of, warnings, mistakes };
}

function fieldNames(schema: GraphQLSchema, parent: string): Set<string> {
  const type = schema.getType(parent);
  const hasFields = isObjectType(type) || isInterfaceType(type);
  return new Set(hasFields ? Object.keys(type.getFields()) : []);
}

/**
 * Our own arguments step aside for filters of the same name: `limit` becomes `drainLimit`, `last`
 * `connectionLast` and `before` `connectionBefore`, with `_` appended while that is taken as well.
 */
function stepAside<Name extends string>({ filters }: PagedField, names: Record<Name, string>) {
  const taken = new Set(filters.map(({ name }) => name));
  const free = Object.entries<string>(names).map(([usual, instead]) => {
    let name = taken.has(usual) ? instead : usual;
    while (taken.has(name)) name += '_';
    return [usual, name];
  });
  return Object.fromEntries(free) as Record<Name, string>;
}

/**
 * Connection types are named after the node. Where one node is listed both as `[Node!]` and as `[Node]`,
 * the second kind is called `Nullable…`, since its edges promise less.
 */
function connectionTypes(list: PagedField, lists: readonly PagedField[], names: RootNames) {
  const node = names.unprefixed(list.nodeType.name);
  const hasTwoKinds =
    !isNonNullType(list.recordType) &&
    lists.some((other) => other.nodeType === list.nodeType && isNonNullType(other.recordType));
  const name = names.type(hasTwoKinds ? `Nullable${node}` : node);
  return { type: `${name}Connection`, edge: `${name}Edge` };
}

function capitalised(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
