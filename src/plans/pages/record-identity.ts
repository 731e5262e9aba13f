import {
  getNamedType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  Kind,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLObjectType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import type { FieldShape } from '../../answers/shape.ts';
import type { Json } from '../../json.ts';
import { field } from '../requests/request-text.ts';

/**
 * What tells the records of a list apart: `id`, under a key of our own, since a caller may give the name `id` to
 * another field. Where records are of several types, each type has its own key: two types may have ids of different
 * types, which one key cannot hold.
 */
export interface RecordIdentity {
  /** To be selected in front of what the caller selects. */
  readonly selections: readonly SelectionNode[];
  /** In front of the fields of a record of this type. */
  readonly silentFields: (type: GraphQLObjectType) => readonly FieldShape[];
  /** `Type:id` of a record; null when it has no id. */
  of(record: Json): string | null;
}

const KEY = '_rsId';

export function idKey(type: string): string {
  return `${KEY}_${type}`;
}

export function identifying(schema: GraphQLSchema, nodeType: GraphQLCompositeType): RecordIdentity {
  if (isObjectType(nodeType)) return ofOneType(nodeType);
  const types = schema.getPossibleTypes(nodeType).filter(hasId);
  const keys = types.map((type) => [type.name, idKey(type.name)] as const);
  return {
    selections: keys.map(([type, alias]) => ({
      kind: Kind.INLINE_FRAGMENT,
      typeCondition: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: type } },
      selectionSet: { kind: Kind.SELECTION_SET, selections: [field('id', { alias })] },
    })),
    silentFields: (type) => (hasId(type) ? [silentId(idKey(type.name), type)] : []),
    of: (record) => {
      for (const [type, key] of keys) {
        const identity = identityFrom(record.get(key), type);
        if (identity !== null) return identity;
      }
      return null;
    },
  };
}

/** Goes by the `id` that the caller selects anyway, if there is one under that name. */
export function identifyingFor(
  schema: GraphQLSchema,
  nodeType: GraphQLCompositeType,
  selections: readonly SelectionNode[],
): RecordIdentity & { readonly ownKey: string | undefined } {
  const identity = identifying(schema, nodeType);
  const isSelected = isObjectType(nodeType) && hasId(nodeType) && selections.some(isPlainId);
  if (!isSelected) return { ...identity, ownKey: undefined };
  return {
    ownKey: 'id',
    selections: [],
    silentFields: () => [],
    of: (record) => identityFrom(record.get('id'), nodeType.name),
  };
}

function ofOneType(type: GraphQLObjectType): RecordIdentity {
  if (!hasId(type)) return { selections: [], silentFields: () => [], of: () => null };
  return {
    selections: [field('id', { alias: KEY })],
    silentFields: () => [silentId(KEY, type)],
    of: (record) => identityFrom(record.get(KEY), type.name),
  };
}

function isPlainId(selection: SelectionNode): selection is FieldNode {
  if (selection.kind !== Kind.FIELD || selection.name.value !== 'id') return false;
  return !selection.alias && !selection.directives?.length && !selection.arguments?.length;
}

function hasId(type: GraphQLObjectType): boolean {
  const id = type.getFields()['id'];
  return id !== undefined && isLeafType(getNamedType(id.type)) && !id.args.some(isRequiredArgument);
}

/** Its own type is of no matter here: whatever it is, it is compared as it was written. */
function silentId(key: string, type: GraphQLObjectType): FieldShape {
  const shape = { kind: 'any', nullable: true, type: 'ID' } as const;
  return { key, shape, isSilent: true, idOf: type.name };
}

function identityFrom(id: Json | undefined, type: string): string | null {
  const text = id?.kind === 'number' ? id.raw : id?.string;
  return text === undefined ? null : `${type}:${text}`;
}
