import {
  isObjectType,
  Kind,
  type GraphQLCompositeType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import { isIdentified } from '../schema/derivation/lists.ts';
import { objectTypesOf, type Adapter, type FieldPath } from '../schema/derived.ts';
import { isJsonObject } from './json.ts';
import { fieldNode, fragmentNode } from './syntax.ts';

/** Selects and reads what identifies the records of a list: `id`, or what adapters.json names. */
export interface Identity {
  readonly selections: readonly SelectionNode[];
  /** Returns `Type:value`; null for a record without it. Removes what the gateway selected for itself. */
  of(record: unknown): string | null;
}

/**
 * The values are selected under aliases of the gateway, since a caller may use the name `id` as an alias of another
 * field; unless the caller selects just that. In a list of several types each type has its own aliases: GraphQL does not
 * allow one response name for values of different types.
 */
export function identityOf(
  schema: GraphQLSchema,
  { nodeType, identity: paths }: Pick<Adapter, 'nodeType' | 'identity'>,
  selections: readonly SelectionNode[],
): Identity {
  if (paths.length === 0) return { selections: [], of: () => null };
  if (isObjectType(nodeType)) {
    const [own] = paths.length === 1 && paths[0]!.length === 1 ? paths[0]! : [];
    if (own !== undefined && selections.some((selection) => isPlain(selection, own))) {
      return { selections: [], of: (record) => identityText(nodeType, [valueAt(record, [own])]) };
    }
  }
  const types = objectTypesOf(schema, nodeType).filter((type) => isIdentified(type, paths));
  const all = types.map((type) => {
    const keys = paths.map((_, at) => `_rs_${type.name}_key${at}`);
    const fields = paths.map((path, at) => fieldAt(path, keys[at]));
    return { type, keys, fields };
  });
  return {
    selections: isObjectType(nodeType)
      ? all.flatMap(({ fields }) => fields)
      : all.map(({ type, fields }) => fragmentNode(type.name, fields)),
    of: (record) => {
      if (!isJsonObject(record)) return null;
      let found: string | null = null;
      for (const { type, keys } of all) {
        if (record[keys[0]!] === undefined) continue;
        const values = keys.map((key, at) => valueAt(record, [key, ...paths[at]!.slice(1)]));
        found = identityText(type, values);
        // JSON.stringify leaves them out. To delete them would make each record a dictionary, which is slow to write.
        for (const key of keys) record[key] = undefined;
      }
      return found;
    },
  };
}

/** Returns `Type:value`; null if a value is missing. */
export function identityText(
  { name }: GraphQLCompositeType,
  values: readonly unknown[],
): string | null {
  if (values.some((value) => value === null || value === undefined)) return null;
  const [value, ...others] = values.map(textOf);
  return `${name}:${others.length > 0 ? JSON.stringify([value, ...others]) : value}`;
}

function textOf(value: unknown): string {
  return isJsonObject(value) ? JSON.stringify(value) : String(value);
}

function isPlain(selection: SelectionNode, name: string): boolean {
  return (
    selection.kind === Kind.FIELD &&
    selection.name.value === name &&
    (selection.alias === undefined || selection.alias.value === name) &&
    (selection.directives ?? []).length === 0
  );
}

function fieldAt([name, ...inner]: FieldPath, alias?: string): ReturnType<typeof fieldNode> {
  const selections = inner.length > 0 ? { selections: [fieldAt(inner)] } : {};
  return fieldNode(name!, { alias, ...selections });
}

function valueAt(record: unknown, path: FieldPath): unknown {
  return path.reduce<unknown>(
    (value, name) => (isJsonObject(value) ? value[name] : undefined),
    record,
  );
}
