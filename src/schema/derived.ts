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
  type GraphQLLeafType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type GraphQLType,
} from 'graphql';

/** Records of the largest page that the service documents (interface, section 8): the cost of a page for callers. */
export const LARGEST_PAGE = 50;

export type AnyField = GraphQLField<unknown, unknown>;

export function hasFields(
  type: GraphQLNamedType | undefined,
): type is GraphQLObjectType | GraphQLInterfaceType {
  return isObjectType(type) || isInterfaceType(type);
}

/** The object types of a schema in alphabetical order, without those of introspection. */
export function objectTypesIn(schema: GraphQLSchema): GraphQLObjectType[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type))
    .filter((type) => !isIntrospectionType(type))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns a field by the name of its type and its own name. */
export function fieldAt(
  schema: GraphQLSchema,
  typeName: string,
  name: string,
): AnyField | undefined {
  const type = schema.getType(typeName);
  return hasFields(type) ? type.getFields()[name] : undefined;
}

/** The types that a union or an interface can have, an object type itself, and nothing for any other type. */
export function objectTypesOf(
  schema: GraphQLSchema,
  type: GraphQLType,
): readonly GraphQLObjectType[] {
  const named = getNullableType(type);
  if (isAbstractType(named)) return schema.getPossibleTypes(named);
  return isObjectType(named) ? [named] : [];
}

/** Whether a type has the shape of a page. A field that returns one may still lack something else of a paged field. */
export function isPage(type: GraphQLNamedType): boolean {
  if (!hasFields(type)) return false;
  const { items, pageInfo } = type.getFields();
  return items !== undefined && pageInfo !== undefined;
}

/** Whether a type is a page, or a result of which at least one type is. */
export function mayBePage(schema: GraphQLSchema, type: GraphQLType): boolean {
  return objectTypesOf(schema, type).some(isPage);
}

/** The field of a type that may identify its records: a scalar, but no Boolean, that needs no arguments. */
export function idOf(type: GraphQLObjectType, name = 'id'): AnyField | undefined {
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
  /** All others: none of them can mean an empty list, or that there is no such record. */
  readonly failures: readonly GraphQLObjectType[];
}

/** The result that a page or a record is behind; undefined if the field returns it itself, or never. */
export function resultOf(
  schema: GraphQLSchema,
  fieldType: GraphQLOutputType,
  success: GraphQLObjectType,
): Result | undefined {
  const type = getNullableType(fieldType);
  if (!isAbstractType(type) || !schema.isSubType(type, success)) return undefined;
  return {
    type,
    success,
    failures: objectTypesOf(schema, type).filter((each) => each !== success),
  };
}

/** A text for `schema explain`. */
export function describeResult({ type, success, failures }: Result): string {
  const errors = failures.map(({ name }) => `; ${name} is an error`);
  return `${success.name} is one of the types of ${type.name}${errors.join('')}.`;
}

/** A field of the upstream that serves a list page by page, recognized by its shape. */
export interface PagedField {
  /** The name of the type that has the field. */
  readonly parent: string;
  readonly name: string;
  readonly field: AnyField;
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
  /** The page size to begin with, from adapters.json. */
  readonly page: number | undefined;
  /** The field by which its parent is requested again; undefined for the query root. */
  readonly reach: ByIdField | undefined;
}

/** What is derived from a paged field, with the names of its fields and types. */
export interface Adapter extends PagedField {
  /** Undefined if the parent already has a field of that name. */
  readonly all: { readonly field: string } | undefined;
  /** Undefined for the same reason, and if nothing identifies a record. */
  readonly connection:
    { readonly field: string; readonly type: string; readonly edge: string } | undefined;
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
  /** The type of its ids as the service takes them, without non-null. */
  readonly idType: GraphQLLeafType;
  /** Undefined if a record cannot be found by its id. */
  readonly lookup: EntityLookup | undefined;
  /** The derived field of Query that returns one record; undefined if the upstream has one, or the name is taken. */
  readonly field: string | undefined;
}

export type EntityLookup = ByIdField | { readonly kind: 'list'; readonly adapter: Adapter };

/** A field that the gateway adds to those of the service. */
export type DerivedField =
  | DerivedList
  | (Derived & { readonly kind: 'record'; readonly entity: Entity })
  | (Derived & { readonly kind: 'entities'; readonly entities: readonly Entity[] })
  | (Derived & { readonly kind: 'service' });

/** `allPersons`, or `personsConnection`. */
export interface DerivedList extends Derived {
  readonly kind: 'all' | 'connection';
  readonly adapter: Adapter;
}

interface Derived {
  /** The name of the type that has the field. */
  readonly parent: string;
  readonly name: string;
  /** The types and fields of the service that it reads, whatever is selected of it: it needs their scopes. */
  readonly reads: readonly string[];
  /** Its definition, with documentation for GraphiQL. */
  readonly sdl: string;
}

/** What is said of the derivation to the operator. */
export interface Notes {
  /** What was derived from every list and every type with an id, and why, for `schema explain`. */
  readonly reports: Report[];
  /** Why something was not derived, for the log at the start. */
  readonly warnings: string[];
}

export interface Report {
  /** For example `Vacancy.candidates`, or `Vacancy`. */
  readonly subject: string;
  readonly facts: Readonly<Record<string, string | undefined>>;
  readonly why: readonly string[];
}
