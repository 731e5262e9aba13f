import {
  Kind,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
} from 'graphql';
import { NO_KEYS, type Keys } from './private-keys.ts';

/*
 * Two types of a union may require fields of one name and different types, as `id: Int!` and `id: ID!`. They cannot be
 * selected together. Then each gets a key with the name of its type.
 */

/** Whether an operation was refused because fields cannot be selected together. */
export function areInConflict([error]: readonly GraphQLError[]): boolean {
  return error !== undefined && /^Fields ".+" conflict because /.test(error.message);
}

/** Gives every field without an alias, which nobody but a resolver or a merge has selected, a key of its type. */
export function withTypedKeys(schema: GraphQLSchema, document: DocumentNode): DocumentNode {
  const types = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(types, {
      Field: ({ alias, name, ...node }) => {
        if (alias || name.value === '__typename') return undefined;
        const typed = `${name.value}${MARK}${types.getParentType()?.name ?? ''}_`;
        return { ...node, name, alias: { kind: Kind.NAME, value: typed } };
      },
    }),
  );
}

/** Not in a name of the schema; a caller's key ends differently. */
const MARK = '__rs_';

/** Returns the key without its type. */
export function withoutType(key: string): string {
  const at = key.endsWith('_') ? key.lastIndexOf(MARK) : -1;
  return at < 0 ? key : key.slice(0, at);
}

/** Puts plain keys back. */
export function withPlainKeys(value: unknown, keys: Keys): unknown {
  if (Array.isArray(value)) return value.map((one) => withPlainKeys(one, keys));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => {
      const key = keys.get(name);
      const isLeaf = key?.leaf !== undefined;
      return [withoutType(name), isLeaf ? one : withPlainKeys(one, key?.below ?? NO_KEYS)];
    }),
  );
}
