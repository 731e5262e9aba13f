import {
  isObjectType,
  Kind,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLObjectType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import { globalIdKey, type FieldShape, type GlobalIds } from '../../answers/shape.ts';
import type { Json } from '../../json.ts';
import { idOf } from '../../schema/derivation/reach-parent.ts';
import { fieldNode } from '../requests/added-fields.ts';

/**
 * Selects and reads what identifies the records of a list: `id`, under an alias of the gateway, since a caller may use
 * the name `id` as an alias of another field. In a list of several types each type has its own alias, because GraphQL
 * does not allow one response name for ids of different types.
 */
export interface RecordIdentity {
  /** To be selected before the caller's selections. */
  readonly selections: readonly SelectionNode[];
  /** The fields of these selections in a record of this type. */
  readonly silentFields: (type: GraphQLObjectType) => readonly FieldShape[];
  /** Returns `Type:id`; null for a record without an id. */
  of(record: Json): string | null;
}

const KEY = '_rsId';

export function idKey(type: string): string {
  return `${KEY}_${type}`;
}

export function identifying(schema: GraphQLSchema, nodeType: GraphQLCompositeType): RecordIdentity {
  if (isObjectType(nodeType)) return ofOneType(nodeType);
  const types = schema.getPossibleTypes(nodeType).filter(idOf);
  const keys = types.map((type) => [type.name, idKey(type.name)] as const);
  return {
    selections: keys.map(([type, alias]) => ({
      kind: Kind.INLINE_FRAGMENT,
      typeCondition: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: type } },
      selectionSet: { kind: Kind.SELECTION_SET, selections: [fieldNode('id', { alias })] },
    })),
    silentFields: (type) => (idOf(type) ? [silentId(idKey(type.name), type)] : []),
    of: (record) => {
      for (const [type, key] of keys) {
        const identity = identityFrom(record.get(key), type);
        if (identity !== null) return identity;
      }
      return null;
    },
  };
}

/** Uses the caller's own `id` if it is selected, and requested, under that name. */
export function identifyingFor(
  schema: GraphQLSchema,
  nodeType: GraphQLCompositeType,
  selections: readonly SelectionNode[],
  globalIds?: GlobalIds,
): RecordIdentity & { readonly ownKey: string | undefined } {
  const identity = identifying(schema, nodeType);
  const id = globalIds?.ids.get(nodeType.name);
  const isRequested = !id || globalIdKey(id, nodeType.name, 'id') === undefined;
  const isSelected =
    isObjectType(nodeType) && idOf(nodeType) && isRequested && selections.some(isPlainId);
  if (!isSelected) return { ...identity, ownKey: undefined };
  return {
    ownKey: 'id',
    selections: [],
    silentFields: () => [],
    of: (record) => identityFrom(record.get('id'), nodeType.name),
  };
}

function ofOneType(type: GraphQLObjectType): RecordIdentity {
  if (!idOf(type)) return { selections: [], silentFields: () => [], of: () => null };
  return {
    selections: [fieldNode('id', { alias: KEY })],
    silentFields: () => [silentId(KEY, type)],
    of: (record) => identityFrom(record.get(KEY), type.name),
  };
}

function isPlainId(selection: SelectionNode): selection is FieldNode {
  if (selection.kind !== Kind.FIELD || selection.name.value !== 'id') return false;
  return !selection.alias && !selection.directives?.length && !selection.arguments?.length;
}

/** The scalar does not matter: ids are compared as they were written. */
function silentId(key: string, type: GraphQLObjectType): FieldShape {
  const shape = { kind: 'any', nullable: true, type: 'ID' } as const;
  return { key, shape, isSilent: true, idOf: type.name };
}

function identityFrom(id: Json | undefined, type: string): string | null {
  const text = id?.kind === 'number' ? id.raw : id?.string;
  return text === undefined ? null : `${type}:${text}`;
}
