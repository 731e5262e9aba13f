import {
  getNamedType,
  getNullableType,
  isCompositeType,
  isInterfaceType,
  isIntrospectionType,
  isListType,
  isObjectType,
  type GraphQLField,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { judgeField, type PagedField } from './find-paged-fields.ts';

/** A field that gives several records, in pages or not. */
export interface FoundList {
  readonly parent: GraphQLObjectType | GraphQLInterfaceType;
  readonly name: string;
  /** Whether its type has what pages have, `items` and `pageInfo`; it may still be none. */
  readonly givesPages: boolean;
  readonly verdict: { readonly paged: PagedField } | { readonly why: string };
}

/** Every list of the schema: those of the root first, then the others by their types. */
export function findLists(schema: GraphQLSchema): FoundList[] {
  const root = schema.getQueryType();
  const types = Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type) || isInterfaceType(type))
    .filter((type) => !isIntrospectionType(type) && !isPage(type))
    .filter((type) => type !== root && type !== schema.getMutationType())
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return [...(root ? [root] : []), ...types].flatMap((parent) =>
    Object.values(parent.getFields())
      .filter(looksLikeList)
      .map((field) => ({
        parent,
        name: field.name,
        givesPages: givesPages(field),
        verdict: verdictOn(field),
      })),
  );
}

function looksLikeList(field: GraphQLField<unknown, unknown>): boolean {
  const type = getNullableType(field.type);
  if (isListType(type)) return isCompositeType(getNamedType(type));
  const takesPages = field.args.some(({ name }) => name === 'first' || name === 'after');
  return takesPages || givesPages(field);
}

function givesPages(field: GraphQLField<unknown, unknown>): boolean {
  const type = getNullableType(field.type);
  return isObjectType(type) && isPage(type);
}

function isPage(type: GraphQLObjectType | GraphQLInterfaceType): boolean {
  const { items, pageInfo } = type.getFields();
  return items !== undefined && pageInfo !== undefined;
}

function verdictOn(field: GraphQLField<unknown, unknown>): FoundList['verdict'] {
  const found = judgeField(field);
  return typeof found === 'string' ? { why: found } : { paged: found };
}
