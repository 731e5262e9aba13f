import {
  getNullableType,
  GraphQLBoolean,
  isAbstractType,
  isInterfaceType,
  isIntrospectionType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  type GraphQLAbstractType,
  type GraphQLArgument,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInterfaceType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
} from 'graphql';

/** Records of the largest page that the service documents (interface, section 8): the cost of a page for callers. */
export const LARGEST_PAGE = 50;

export type TypeWithFields = GraphQLObjectType | GraphQLInterfaceType;

export function hasFields(type: GraphQLNamedType | undefined): type is TypeWithFields {
  return isObjectType(type) || isInterfaceType(type);
}

/** The object types and interfaces of a schema, without those of introspection. */
export function typesWithFields(schema: GraphQLSchema): TypeWithFields[] {
  return Object.values(schema.getTypeMap())
    .filter(hasFields)
    .filter((type) => !isIntrospectionType(type));
}

/** Returns a field by the name of its type and its own name. */
export function fieldAt(
  schema: GraphQLSchema,
  typeName: string,
  name: string,
): GraphQLField<unknown, unknown> | undefined {
  const type = schema.getType(typeName);
  return hasFields(type) ? type.getFields()[name] : undefined;
}

/** The types that a union or an interface can have; any other type itself. */
export function objectTypesOf(
  schema: GraphQLSchema,
  type: GraphQLCompositeType,
): readonly GraphQLObjectType[] {
  return isAbstractType(type) ? schema.getPossibleTypes(type) : [type];
}

/** Whether a type has the shape of a page. A field that returns one may still lack something else of a paged field. */
export function isPage(type: GraphQLNamedType): boolean {
  if (!hasFields(type)) return false;
  const { items, pageInfo } = type.getFields();
  return items !== undefined && pageInfo !== undefined;
}

/** Whether a type is a page, or a result of which at least one type is. */
export function mayBePage(schema: GraphQLSchema, type: GraphQLNamedType): boolean {
  return isPage(type) || (isAbstractType(type) && schema.getPossibleTypes(type).some(isPage));
}

/** The field of a type that may identify its records: a scalar, but no Boolean, that needs no arguments. */
export function idOf(
  type: GraphQLObjectType,
  name = 'id',
): GraphQLField<unknown, unknown> | undefined {
  const id = type.getFields()[name];
  const value = getNullableType(id?.type);
  const isScalar = isLeafType(value) && value !== GraphQLBoolean;
  return isScalar && !id!.args.some(isRequiredArgument) ? id : undefined;
}

/** A union or an interface of a page or a record, and of errors: `union Person = PersonItem | PersonError`. */
export interface Result {
  readonly type: GraphQLAbstractType;
  /** The type of the page or the record. */
  readonly success: GraphQLObjectType;
  /** All others. */
  readonly failures: readonly GraphQLObjectType[];
}

/** A field of the upstream that serves a list page by page, recognized by its shape. */
export interface PagedField {
  readonly name: string;
  readonly field: GraphQLField<unknown, unknown>;
  /** The argument with the number of records. */
  readonly first: GraphQLArgument;
  /** The argument with the cursor, whatever its name is. */
  readonly after: GraphQLArgument;
  /** The arguments that are not for paging. The derived fields have them too. */
  readonly filters: readonly GraphQLArgument[];
  /** The type of a page. */
  readonly pageType: GraphQLObjectType;
  /** Undefined if the field returns the page itself. */
  readonly result: Result | undefined;
  readonly itemsType: GraphQLOutputType;
  /** One element of `items`, with the upstream's nullability. */
  readonly recordType: GraphQLOutputType;
  readonly nodeType: GraphQLCompositeType;
  /** The field that identifies a record: `id`, or what adapters.json names. Undefined if nothing does. */
  readonly identity: string | undefined;
  /** The page's field with the number of records of all pages, which adapters.json names; undefined without one. */
  readonly count: string | undefined;
}

/** The fields that are derived from a paged field, with their names and those of their types. */
export interface Adapter extends PagedField {
  /** The name of the type that has the paged field. */
  readonly parent: string;
  /** Undefined if the parent already has a field of that name. */
  readonly all: { readonly field: string } | undefined;
  /** Undefined for the same reason, and if nothing identifies a record. */
  readonly connection:
    { readonly field: string; readonly type: string; readonly edge: string } | undefined;
  /** The page size to begin with, from adapters.json. */
  readonly page: number | undefined;
  /** The field by which its parent is requested again; undefined for the query root. */
  readonly reach: ByIdField | undefined;
}

/** A root field of the upstream that returns a record by its id. */
export interface ByIdField {
  readonly kind: 'id';
  readonly field: string;
  readonly argument: GraphQLArgument;
  /** Undefined if the field returns the record itself. */
  readonly result: Result | undefined;
}

/** A type whose records have ids, so that other subgraphs can refer to them. */
export interface Entity {
  readonly type: GraphQLObjectType;
  /** The type of its `id`, without non-null. */
  readonly idType: GraphQLOutputType;
  /** Undefined if a record cannot be found by its id. */
  readonly lookup: EntityLookup | undefined;
  /** The derived field of Query that returns one record; undefined if the upstream has one, or the name is taken. */
  readonly field: string | undefined;
}

export type EntityLookup = ByIdField | { readonly kind: 'list'; readonly adapter: Adapter };

/** A field that the gateway adds to those of the service. A new kind does not compile until it has all of its parts. */
export type DerivedField =
  | DerivedList
  | (Place & { readonly kind: 'record'; readonly entity: Entity })
  | (Place & { readonly kind: 'entities'; readonly entities: readonly Entity[] })
  | (Place & { readonly kind: 'service' });

/** `allPersons`, or `personsConnection`. */
export interface DerivedList extends Place {
  readonly kind: 'all' | 'connection';
  readonly adapter: Adapter;
}

interface Place {
  /** The name of the type that has the field. */
  readonly parent: string;
  readonly name: string;
}

/** What was derived from a list or a type with an id, and why, for `schema explain`. */
export interface Report {
  /** For example `Vacancy.candidates`, or `Vacancy`. */
  readonly subject: string;
  readonly facts: Readonly<Record<string, string | undefined>>;
  readonly why: readonly string[];
}
