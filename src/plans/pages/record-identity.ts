import {
  isAbstractType,
  isObjectType,
  Kind,
  type FieldNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import { globalIdKey, objectShape, type FieldShape, type GlobalIds } from '../../answers/shape.ts';
import type { Json } from '../../json.ts';
import { isIdentified } from '../../schema/derivation/lists.ts';
import type { FieldPath, PagedField } from '../../schema/derived.ts';
import { fieldNode, fragmentNode } from '../requests/request-text.ts';

/**
 * Selects and reads what identifies the records of a list: `id`, or the values that adapters.json names. They are
 * selected under aliases of the gateway, since a caller may use the name `id` as an alias of another field. In a list of
 * several types each type has its own aliases, because GraphQL does not allow one response name for values of different
 * types.
 */
export interface RecordIdentity {
  /** They come before the caller's selections. */
  readonly selections: readonly SelectionNode[];
  /** The fields of these selections in a record of this type. */
  readonly silentFields: (type: GraphQLObjectType) => readonly FieldShape[];
  /** How many values identify a record together. */
  readonly values: number;
  /** Returns the identity; null for a record that lacks one of the values. */
  of(record: Json): string | null;
}

type IdentifiedList = Pick<PagedField, 'nodeType' | 'identity'>;

const KEY = '_rsId';

export function idKey(type: string): string {
  return `${KEY}_${type}`;
}

export function identifying(
  schema: GraphQLSchema,
  { nodeType, identity: paths }: IdentifiedList,
): RecordIdentity {
  const values = paths.length;
  if (values === 0) return NO_IDENTITY;
  if (isObjectType(nodeType)) {
    const identity = valuesOf(nodeType, paths, (index) => (values === 1 ? KEY : `${KEY}${index}`));
    return { ...identity, values, silentFields: () => identity.silentFields };
  }
  const types = isAbstractType(nodeType) ? schema.getPossibleTypes(nodeType) : [];
  const ofType = new Map(
    types
      .filter((type) => isIdentified(type, paths))
      .map((type) => {
        const { name } = type;
        const keyOf = (index: number) => (values === 1 ? idKey(name) : `${KEY}${index}_${name}`);
        return [name, valuesOf(type, paths, keyOf)] as const;
      }),
  );
  return {
    selections: Array.from(ofType, ([type, { selections }]) => fragmentNode(type, selections)),
    silentFields: ({ name }) => ofType.get(name)?.silentFields ?? [],
    values,
    of: (record) => {
      for (const { of: identityOf } of ofType.values()) {
        const identity = identityOf(record);
        if (identity !== null) return identity;
      }
      return null;
    },
  };
}

/** Uses the caller's own field if it is the only value, and selected and requested under its name. */
export function identifyingFor(
  schema: GraphQLSchema,
  list: IdentifiedList,
  selections: readonly SelectionNode[],
  globalIds?: GlobalIds,
): RecordIdentity & { readonly ownKey: string | undefined } {
  const identity = identifying(schema, list);
  const { nodeType, identity: paths } = list;
  const name = paths.length === 1 && paths[0]!.length === 1 ? paths[0]![0]! : undefined;
  const id = name === 'id' ? globalIds?.ids.get(nodeType.name) : undefined;
  const isRequested = !id || globalIdKey(id, nodeType.name, 'id') === undefined;
  const isSelected = isObjectType(nodeType) && isRequested && selections.some(isPlain(name));
  if (name === undefined || !isSelected) return { ...identity, ownKey: undefined };
  return {
    ownKey: name,
    selections: [],
    silentFields: () => [],
    values: 1,
    of: (record) => identityFrom(nodeType.name, [textOf(record.get(name))]),
  };
}

/**
 * Returns `Type:value` for one value. The values of several have their lengths before them, so that no two records get
 * one identity; undefined is a missing value.
 */
export function identityFrom(type: string, values: readonly (string | undefined)[]): string | null {
  const [first] = values;
  if (values.length === 1) return first === undefined ? null : `${type}:${first}`;
  let identity = `${type}:`;
  for (const value of values) {
    if (value === undefined) return null;
    identity += `${value.length}:${value}`;
  }
  return identity;
}

const NO_IDENTITY: RecordIdentity = {
  selections: [],
  silentFields: () => [],
  values: 0,
  of: () => null,
};

/** @param keyOf the alias of each value */
function valuesOf(
  { name }: GraphQLObjectType,
  paths: readonly FieldPath[],
  keyOf: (index: number) => string,
) {
  const keys = paths.map((_, index) => keyOf(index));
  return {
    selections: paths.map((path, index) => selectionOf(path, keys[index]!)),
    silentFields: paths.map((path, index) => ({
      ...valueShape(path, keys[index]!, name),
      isSilent: true,
    })),
    of: (record: Json) =>
      identityFrom(
        name,
        paths.map((path, index) => textOf(valueIn(record.get(keys[index]!), path.length - 1))),
      ),
  };
}

/** Below the first field, each has the same alias. */
function selectionOf([name, ...path]: FieldPath, alias: string): FieldNode {
  const selections = path.length > 0 ? [selectionOf(path, KEY)] : undefined;
  return fieldNode(name!, { alias, ...(selections && { selections }) });
}

/** The scalar does not matter: ids are compared as they were written. */
function valueShape([, ...path]: FieldPath, key: string, idOf: string): FieldShape {
  if (path.length > 0) {
    const inner = { nullable: true, type: '' };
    return { key, shape: objectShape(inner, [valueShape(path, KEY, idOf)]), isSilent: false };
  }
  return { key, shape: { kind: 'any', nullable: true, type: 'ID' }, isSilent: false, idOf };
}

function valueIn(value: Json | undefined, depth: number): Json | undefined {
  let inner = value;
  for (let left = depth; left > 0; left -= 1) {
    inner = inner?.kind === 'object' ? inner.get(KEY) : undefined;
  }
  return inner;
}

function isPlain(name: string | undefined) {
  return (selection: SelectionNode): boolean => {
    if (selection.kind !== Kind.FIELD || selection.name.value !== name) return false;
    return !selection.alias && !selection.directives?.length && !selection.arguments?.length;
  };
}

function textOf(value: Json | undefined): string | undefined {
  return value?.kind === 'number' ? value.raw : value?.string;
}
