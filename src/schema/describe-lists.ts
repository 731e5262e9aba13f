import {
  getNamedType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  type GraphQLCompositeType,
} from 'graphql';
import type { Adapter, Entity } from './derived.ts';

const FIELDS_SHOWN = 3;

/** The lists that can be requested without arguments: an example cannot guess the value of a filter. */
export function describeLists({
  adapters,
  entities,
}: {
  readonly adapters: readonly Adapter[];
  readonly entities: readonly Entity[];
}) {
  return adapters
    .filter(({ filters }) => !filters.some(isRequiredArgument))
    .map(({ name, after, all, connection, nodeType, field }) => {
      const entity = entities.find(({ type }) => type.name === nodeType.name);
      return {
        field: name,
        after: after.name,
        ...(all && { all }),
        ...(connection && { connection }),
        ...(entity?.lookup && { entity: describeEntity(entity, entity.lookup) }),
        selection: plainFields(nodeType).slice(0, FIELDS_SHOWN).join(' ') || '__typename',
        pageInfo: pageInfoFields(getNamedType(field.type)),
      };
    });
}

function describeEntity({ type, field, idType }: Entity, lookup: NonNullable<Entity['lookup']>) {
  return lookup.kind === 'id' && !lookup.result
    ? {
        type: type.name,
        field: lookup.field,
        argument: lookup.argument.name,
        idType: String(lookup.argument.type),
      }
    : { type: type.name, field, argument: 'id', idType: `${String(idType)}!` };
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
