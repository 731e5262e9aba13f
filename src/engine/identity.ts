import {
  isObjectType,
  Kind,
  type GraphQLCompositeType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import { idOf, objectTypesOf, type Adapter } from '../schema/derived.ts';
import { isJsonObject } from './json.ts';
import { fieldNode, fragmentNode } from './syntax.ts';

/**
 * Selects and reads what identifies the records of a list: `id`, or what adapters.json names.
 *
 * The value is selected under an alias of the gateway, since a caller may use the name `id` as an alias of another field;
 * unless the caller selects just that. In a list of several types each type has its own alias: GraphQL does not allow one
 * response name for values of different types.
 */
export function identityOf(
  schema: GraphQLSchema,
  { nodeType, identity }: Pick<Adapter, 'nodeType' | 'identity'>,
  selections: readonly SelectionNode[],
) {
  if (identity === undefined) return { selections: [], of: () => null };
  const isSelected =
    isObjectType(nodeType) && selections.some((selection) => isPlain(selection, identity));
  const all = objectTypesOf(schema, nodeType)
    .filter((type) => idOf(type, identity))
    .map((type) => ({ type, key: isSelected ? identity : `_rs_${type.name}_key0` }));
  const fields = all.map(({ type, key }) => {
    const field = fieldNode(identity, { alias: key });
    return type === nodeType ? field : fragmentNode(type.name, [field]);
  });
  return {
    selections: isSelected ? [] : fields,
    /** Returns `Type:value`; null for a record without it. Removes what the gateway selected for itself. */
    of: (record: unknown): string | null => {
      const found = isJsonObject(record) && all.find(({ key }) => record[key] !== undefined);
      if (!found) return null;
      const { [found.key]: value } = record;
      // JSON.stringify leaves it out. To delete it would make each record a dictionary, which is slow to write.
      if (!isSelected) record[found.key] = undefined;
      return identityText(found.type, value);
    },
  };
}

/** Returns `Type:value`; null without a value. */
export function identityText({ name }: GraphQLCompositeType, value: unknown): string | null {
  if (value === null || value === undefined) return null;
  // A long integer is an object too: see json.ts.
  return `${name}:${typeof value === 'string' ? value : JSON.stringify(value)}`;
}

function isPlain(selection: SelectionNode, name: string): boolean {
  return (
    selection.kind === Kind.FIELD &&
    selection.name.value === name &&
    (selection.alias === undefined || selection.alias.value === name) &&
    (selection.directives ?? []).length === 0
  );
}
