import {
  getNamedType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  type GraphQLCompositeType,
} from 'graphql';
import type { Adapter } from './derived.ts';

const FIELDS_SHOWN = 3;

/**
 * Describes for the worked examples of GraphiQL the lists that can be requested without arguments: an example cannot
 * guess the value of a filter.
 */
export function describeLists(adapters: readonly Adapter[]) {
  return adapters
    .filter(({ field }) => !field.args.some(isRequiredArgument))
    .map(({ name, all, connection, nodeType, field }) => ({
      field: name,
      ...(all && { all: all.field }),
      ...(connection && { connection: connection.field }),
      selection: plainFields(nodeType).slice(0, FIELDS_SHOWN).join(' ') || '__typename',
      pageInfo: pageInfoFields(getNamedType(field.type)),
    }));
}

function plainFields(type: GraphQLCompositeType): string[] {
  if (!('getFields' in type)) return [];
  return Object.values(type.getFields())
    .filter((field) => isLeafType(getNamedType(field.type)) && !field.args.some(isRequiredArgument))
    .map(({ name }) => name);
}

function pageInfoFields(page: ReturnType<typeof getNamedType>): string {
  const pageInfo = isObjectType(page)
    ? getNamedType(page.getFields()['pageInfo']?.type)
    : undefined;
  return isObjectType(pageInfo) ? plainFields(pageInfo).join(' ') : 'hasNextPage endCursor';
}
