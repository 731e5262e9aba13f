import { isInterfaceType, isObjectType, type GraphQLSchema } from 'graphql';
import type { FieldOverride } from './adapter-overrides.ts';
import type { PagedField } from './find-paged-fields.ts';
import type { Adapter } from './adapter.ts';
import { connectionTypeNames } from './name-connection-types.ts';
import type { TypeOverrides } from './reach-parent.ts';
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
  overrides: TypeOverrides,
) {
  const warnings: string[] = [];
  const types = connectionTypeNames(schema, lists, names, overrides);
  const { mistakes } = types;
  const fields = new Map<string, Set<string>>();
  // Of every name that the operator wrote, where.
  const written = new Map<string, string>();
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
    const isRoot = parent === schema.getQueryType()?.name;
    const plain = isRoot ? names.upstream(list.name) : list.name;
    const derived = (name: string) => (isRoot ? names.derived(name) : name);
    const all = {
      field: override.all ?? derived(`all${capitalised(plain)}`),
      ...stepAside(list, { limit: 'drainLimit' }),
      after: 'after',
    };
    const connectionField = override.connection ?? derived(`${plain}Connection`);
    const hasAll = freeField('all', all.field);
    const named = freeField('connection', connectionField) ? types.of(list) : undefined;
    const connection = named && {
      field: connectionField,
      type: named.type,
      edge: named.edge,
      ...stepAside(list, { last: 'connectionLast', before: 'connectionBefore' }),
    };
    warnings.push(...taken);
    const adapter: Adapter = {
      ...list,
      parent,
      all: hasAll ? all : undefined,
      connection,
    };
    return { adapter, why: [...(named?.why ?? []), ...taken] };
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

function capitalised(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
