import {
  getNamedType,
  getNullableType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  type FieldNode,
  type GraphQLAbstractType,
  type GraphQLError,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type SelectionNode,
} from 'graphql';
import { selectionsOf } from '../selections.ts';
import {
  collectFields,
  refusedStream,
  type CollectedFields,
  type DeferUse,
  type SelectionScope,
} from './collect-fields.ts';

/**
 * The form that a value of an answer must have. It is made once from a selection. The scanner and the general reading
 * use the same shape, so both accept the same values.
 */
export type Shape = LeafShape | ListShape | ObjectShape | AbstractShape;

interface OfType {
  readonly nullable: boolean;
  /** The type as the schema writes it, for messages. */
  readonly type: string;
}

export interface LeafShape extends OfType {
  readonly kind: 'string' | 'id' | 'int' | 'float' | 'boolean' | 'enum' | 'any';
  /** The names of an enum's values. */
  readonly values?: ReadonlySet<string>;
  /** Set for an id of the service that is served as a global id: the served type of its record. */
  readonly globalIdOf?: string;
}

export function isLeaf(shape: Shape): shape is LeafShape {
  return shape.kind !== 'object' && shape.kind !== 'list' && shape.kind !== 'abstract';
}

/** Set where a condition of the selection is null: any value is null then, with this error (see `CollectedFields`). */
interface Refusable {
  readonly refusal?: GraphQLError | undefined;
}

export interface ListShape extends OfType, Refusable {
  readonly kind: 'list';
  readonly of: Shape;
}

export interface ObjectShape extends OfType, Refusable {
  readonly kind: 'object';
  /** In the order of the answer. */
  readonly fields: readonly FieldShape[];
  /** The keys of the fields in the service's answer. */
  readonly sentKeys: ReadonlySet<string>;
}

/** A value of an abstract type: the answer has its type name under `_rsType`, before all other keys. */
export interface AbstractShape extends OfType {
  readonly kind: 'abstract';
  /** Returns the shape for a type, by the upstream's name; undefined for a type that is not allowed here. */
  readonly of: (upstreamType: string) => ObjectShape | undefined;
  /** The fields that are selected of all types. */
  readonly common: () => readonly FieldShape[];
}

export interface FieldShape {
  readonly key: string;
  /** The key in the service's answer, if it differs. */
  readonly sentKey?: string | undefined;
  readonly shape: Shape | TypenameShape | PlaceholderShape | RefusedShape;
  /** Selected for the gateway's own use, and cut out of the answer. */
  readonly isSilent: boolean;
  /** Set for the field that identifies the records of a list: the type of the record. */
  readonly idOf?: string;
  /** The length of the field's name, which may be shorter than its alias. */
  readonly nameLength?: number;
  /** The `@defer` that it is under: then it is sent in a later part of the answer. */
  readonly deferred?: DeferUse | undefined;
}

export interface TypenameShape {
  readonly kind: 'typename';
  readonly upstream: string;
  readonly served: string;
}

/** A field that the caller may not read: always null, with this error. */
export interface RefusedShape extends OfType {
  readonly kind: 'refused';
  readonly error: GraphQLError;
}

/** A derived field, which the upstream does not have: it is filled in when the object around it has been read. */
export interface PlaceholderShape {
  readonly kind: 'placeholder';
  /** Plans the field; lists/nested-lists.ts of the plans sets and reads it. */
  readonly filling: unknown;
  /** The keys of the parent's id and of the inlined first page, if they are selected. */
  readonly idKey: string | undefined;
  readonly pageKey: string | undefined;
}

/** The key under which the gateway selects `__typename` first where a type is abstract. */
export const TYPE_KEY = '_rsType';

export interface ShapeScope extends SelectionScope {
  readonly upstreamType: (servedType: string) => string;
  /** Undefined if ids are served as the service has them. */
  readonly globalIds?: GlobalIds | undefined;
  /** Returns the placeholder of a derived field; undefined for any other field. */
  readonly placeholderAt: (
    type: GraphQLObjectType,
    key: string,
    nodes: readonly FieldNode[],
  ) => PlaceholderShape | undefined;
}

export interface GlobalIds {
  /** The types whose `id` is served as a global id, and the type of the service's `id`. */
  readonly ids: ReadonlyMap<string, GraphQLOutputType>;
  /** The served field with the service's `id`. */
  readonly recordId: string;
}

/**
 * Returns the key under which the `id` of a type is requested; undefined for the caller's own key. Global ids are of one
 * type, so callers may select them under one key in records of several types. The service does not allow that for ids
 * of different types (specification, 5.3.2).
 */
export function globalIdKey(
  id: GraphQLOutputType,
  parent: string,
  key: string,
): string | undefined {
  return String(id) === 'ID!' ? undefined : `_rsGlobal${parent.length}_${parent}_${key}`;
}

/** @param selections as the caller wrote them */
export function shapeOf(
  scope: ShapeScope,
  type: GraphQLOutputType,
  selections: readonly SelectionNode[],
): Shape {
  const of = { nullable: !isNonNullType(type), type: String(type) };
  const inner = getNullableType(type);
  if (isListType(inner))
    return { ...of, kind: 'list', of: shapeOf(scope, inner.ofType, selections) };
  const named = getNamedType(inner);
  if (isEnumType(named)) {
    return { ...of, kind: 'enum', values: new Set(named.getValues().map(({ name }) => name)) };
  }
  if (isScalarType(named)) return { ...of, kind: SCALARS[named.name] ?? 'any' };
  if (isObjectType(named)) return selectedShape(scope, of, named, selections);
  return {
    ...of,
    kind: 'abstract',
    of: possibleShapes(scope, named, selections),
    common: () => fieldsOf(scope, collectFields(scope, named, selections).fields, named),
  };
}

/** Returns the shape of the value of a field that these nodes select. */
export function shapeOfField(
  scope: ShapeScope,
  type: GraphQLOutputType,
  nodes: readonly FieldNode[],
): Shape {
  const shape = shapeOf(scope, type, selectionsOf(nodes));
  return shape.kind === 'list' ? { ...shape, refusal: refusedStream(scope, nodes) } : shape;
}

function selectedShape(
  scope: ShapeScope,
  of: OfType,
  type: GraphQLObjectType,
  selections: readonly SelectionNode[],
): ObjectShape {
  const { fields, refusal } = collectFields(scope, type, selections);
  return { ...objectShape(of, fieldsOf(scope, fields, type)), refusal };
}

/** @param fields in the order of the answer */
export function objectShape(
  { nullable, type }: OfType,
  fields: readonly FieldShape[],
): ObjectShape {
  const sentKeys = new Set(fields.map(({ key, sentKey = key }) => sentKey));
  return { kind: 'object', nullable, type, fields, sentKeys };
}

const SCALARS: Readonly<Record<string, LeafShape['kind']>> = Object.assign(Object.create(null), {
  String: 'string',
  ID: 'id',
  Int: 'int',
  Float: 'float',
  Boolean: 'boolean',
} satisfies Record<string, LeafShape['kind']>);

function fieldsOf(
  scope: ShapeScope,
  collected: CollectedFields['fields'],
  type: GraphQLObjectType | GraphQLAbstractType,
): FieldShape[] {
  const definitions = 'getFields' in type ? type.getFields() : {};
  const id = scope.globalIds?.ids.get(type.name);
  const fields: FieldShape[] = [];
  for (const { key, nodes, deferred, refused } of collected.values()) {
    if (refused) {
      const fieldType = definitions[refused.name]!.type;
      const of = { nullable: !isNonNullType(fieldType), type: String(fieldType) };
      const shape = { ...of, kind: 'refused', error: refused.error } as const;
      fields.push({ key, shape, isSilent: false, deferred });
      continue;
    }
    const name = nodes[0]!.name.value;
    const placeholder = isObjectType(type) ? scope.placeholderAt(type, key, nodes) : undefined;
    if (placeholder) {
      fields.push({ key, shape: placeholder, isSilent: false, deferred });
    } else if (name === '__typename') {
      const shape = {
        kind: 'typename',
        served: type.name,
        upstream: scope.upstreamType(type.name),
      } as const;
      fields.push({ key, shape, isSilent: false, deferred });
    } else if (id && name === 'id') {
      const shape = { ...(shapeOf(scope, id, []) as LeafShape), globalIdOf: type.name };
      const sentKey = globalIdKey(id, type.name, key);
      fields.push({ key, sentKey, shape, isSilent: false, nameLength: name.length, deferred });
    } else {
      const fieldType =
        id && name === scope.globalIds?.recordId
          ? id
          : (definitions[name] ?? INTROSPECTION[name]!).type;
      const shape = shapeOfField(scope, fieldType, nodes);
      fields.push({ key, shape, isSilent: false, nameLength: name.length, deferred });
    }
  }
  return fields;
}

export interface KeyBytes {
  readonly all: number;
  /** By how many bytes aliases are longer than the names of their fields. */
  readonly ofAliases: number;
}

/** The assumed length of a list that is not paged: its length is unknown until it is read. */
export const ASSUMED_LIST_LENGTH = 10;

/**
 * Counts the bytes of all keys of one record: the answer repeats them in every record. Not those of nested lists that
 * the gateway drains, whose records are counted on their own.
 */
export function keyBytesOf(shapes: readonly Shape[]): KeyBytes {
  let all = 0;
  let ofAliases = 0;
  const count = (shape: FieldShape['shape'], times: number): void => {
    if (shape.kind === 'list') count(shape.of, times * ASSUMED_LIST_LENGTH);
    if (shape.kind !== 'object' && shape.kind !== 'abstract') return;
    for (const field of shape.kind === 'object' ? shape.fields : shape.common()) {
      if (field.isSilent) continue;
      all += times * (field.key.length + 4);
      ofAliases += times * Math.max(0, field.key.length - (field.nameLength ?? field.key.length));
      count(field.shape, times);
    }
  };
  for (const shape of shapes) count(shape, 1);
  return { all, ofAliases };
}

/** Where a root type is selected again below the root, the service answers introspection. */
const INTROSPECTION: Readonly<Record<string, { readonly type: GraphQLOutputType }>> = {
  __schema: SchemaMetaFieldDef,
  __type: TypeMetaFieldDef,
};

/** Makes the shape of a type on first use: an interface can have hundreds of types. */
function possibleShapes(
  scope: ShapeScope,
  abstract: GraphQLAbstractType,
  selections: readonly SelectionNode[],
): AbstractShape['of'] {
  const types = new Map(
    scope.schema.getPossibleTypes(abstract).map((type) => [scope.upstreamType(type.name), type]),
  );
  const shapes = new Map<string, ObjectShape>();
  return (name) => {
    const type = types.get(name);
    if (!type) return undefined;
    const known =
      shapes.get(name) ??
      selectedShape(scope, { nullable: true, type: type.name }, type, selections);
    shapes.set(name, known);
    return known;
  };
}
