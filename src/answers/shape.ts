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
  type GraphQLObjectType,
  type GraphQLOutputType,
  type SelectionNode,
} from 'graphql';
import {
  collectFields,
  selectionsOf,
  type DeferUse,
  type SelectionScope,
} from './collect-fields.ts';

/**
 * What a value of the answer has to look like: made once from a selection, read by the scanner and by the
 * general reading alike, so that there is one meaning of what is right.
 */
export type Shape = LeafShape | ListShape | ObjectShape | AbstractShape;

interface OfType {
  readonly nullable: boolean;
  /** The type as the schema writes it, for messages. */
  readonly type: string;
}

export interface LeafShape extends OfType {
  readonly kind: 'string' | 'id' | 'int' | 'float' | 'boolean' | 'enum' | 'any';
  /** Of an enum. */
  readonly values?: ReadonlySet<string>;
}

export interface ListShape extends OfType {
  readonly kind: 'list';
  readonly of: Shape;
}

export interface ObjectShape extends OfType {
  readonly kind: 'object';
  /** In the order of the answer. */
  readonly fields: readonly FieldShape[];
}

/** A value whose type the answer tells, under `_rsType`, in front of everything else. */
export interface AbstractShape extends OfType {
  readonly kind: 'abstract';
  /** The shape for a type, by the upstream's name of it; undefined for a type that may not be here. */
  readonly of: (upstreamType: string) => ObjectShape | undefined;
}

export interface FieldShape {
  readonly key: string;
  readonly shape: Shape | TypenameShape | HoleShape;
  /** Selected for the gateway's own use, and left out of what callers get. */
  readonly isSilent: boolean;
  /** The type whose records this field tells from each other: set for the ids of a list's records. */
  readonly idOf?: string;
  /** Of the field's own name, where an alias stands in its place. */
  readonly nameLength?: number;
  /** It comes in a later part of the answer. */
  readonly deferred?: DeferUse | undefined;
}

export interface TypenameShape {
  readonly kind: 'typename';
  readonly upstream: string;
  readonly served: string;
}

/** A field that the upstream does not have: it is filled in once the object around it has been read. */
export interface HoleShape {
  readonly kind: 'hole';
  /** What fills it, for whoever does. */
  readonly filling: unknown;
  /** Where the parent's id is in the answer, and the first page of the list, if they are selected. */
  readonly idKey: string | undefined;
  readonly pageKey: string | undefined;
}

/** The key of the type of a value, which the gateway selects in front of everything where a type is abstract. */
export const TYPE_KEY = '_rsType';

export interface ShapeScope extends SelectionScope {
  readonly upstreamType: (servedType: string) => string;
  /** For a field that is derived: what stands in its place in the request, and in the answer. */
  readonly holeAt: (
    type: GraphQLObjectType,
    key: string,
    nodes: readonly FieldNode[],
  ) => HoleShape | undefined;
}

/** @param selections as callers wrote them */
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
  if (isObjectType(named))
    return { ...of, kind: 'object', fields: fieldsOf(scope, named, selections) };
  return {
    ...of,
    kind: 'abstract',
    of: possibleShapes(scope, named, selections),
  };
}

/** The shape of an object of exactly this type, which may be null. */
export function objectShape(
  scope: ShapeScope,
  type: GraphQLObjectType,
  selections: readonly SelectionNode[],
): ObjectShape {
  return {
    kind: 'object',
    nullable: true,
    type: type.name,
    fields: fieldsOf(scope, type, selections),
  };
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
  type: GraphQLObjectType,
  selections: readonly SelectionNode[],
): FieldShape[] {
  const definitions = type.getFields();
  const fields: FieldShape[] = [];
  for (const { key, nodes, deferred } of collectFields(scope, type, selections).values()) {
    const name = nodes[0]!.name.value;
    const hole = scope.holeAt(type, key, nodes);
    if (hole) {
      fields.push({ key, shape: hole, isSilent: false, deferred });
    } else if (name === '__typename') {
      const shape = {
        kind: 'typename',
        served: type.name,
        upstream: scope.upstreamType(type.name),
      } as const;
      fields.push({ key, shape, isSilent: false, deferred });
    } else {
      const { type: its } = definitions[name] ?? INTROSPECTION[name]!;
      const shape = shapeOf(scope, its, selectionsOf(nodes));
      fields.push({ key, shape, isSilent: false, nameLength: name.length, deferred });
    }
  }
  return fields;
}

export interface KeyBytes {
  readonly all: number;
  /** What aliases are longer than the names that they stand for. */
  readonly ofAliases: number;
}

/** Of a list nobody knows how long it is. */
const PLAIN_LIST = 10;

/** What the keys of a value take in its answer: they stand there once for each record. */
export function keyBytesOf(shapes: readonly Shape[]): KeyBytes {
  let all = 0;
  let ofAliases = 0;
  const count = (shape: FieldShape['shape'], times: number): void => {
    if (shape.kind === 'list') count(shape.of, times * PLAIN_LIST);
    if (shape.kind !== 'object') return;
    for (const field of shape.fields) {
      if (field.isSilent) continue;
      all += times * (field.key.length + 4);
      ofAliases += times * Math.max(0, field.key.length - (field.nameLength ?? field.key.length));
      count(field.shape, times);
    }
  };
  for (const shape of shapes) count(shape, 1);
  return { all, ofAliases };
}

/** A service may be asked for its own schema where its root type is met again. */
const INTROSPECTION: Readonly<Record<string, { readonly type: GraphQLOutputType }>> = {
  __schema: SchemaMetaFieldDef,
  __type: TypeMetaFieldDef,
};

/** Made when a type is met: an interface can have hundreds of them. */
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
    const known = shapes.get(name) ?? objectShape(scope, type, selections);
    shapes.set(name, known);
    return known;
  };
}
