import {
  getNamedType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLObjectType,
} from 'graphql';
import type { Adapter, Entity, Result } from './derived.ts';

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
    .map(({ name, after, all, connection, nodeType, pageType, result }) => {
      const entity = entities.find(({ type }) => type.name === nodeType.name);
      return {
        field: name,
        after: after.name,
        ...(all && { all }),
        ...(connection && { connection }),
        ...(result && { result: describeResult(result, Object.values(pageType.getFields())) }),
        ...(entity?.lookup && { entity: describeEntity(entity, entity.lookup) }),
        selection: namesOf(shownFields(nodeType)) || '__typename',
        pageInfo: pageInfoFields(pageType),
      };
    });
}

function describeEntity({ type, field, idType }: Entity, lookup: NonNullable<Entity['lookup']>) {
  const derived = { type: type.name, field, argument: 'id', idType: `${String(idType)}!` };
  if (lookup.kind !== 'id') return derived;
  const { result, argument } = lookup;
  const byId = { field: lookup.field, argument: argument.name, idType: String(argument.type) };
  return result
    ? { ...derived, byResult: { ...byId, ...describeResult(result, shownFields(type)) } }
    : { type: type.name, ...byId };
}

/** @param beside the fields that are requested of the success type */
function describeResult({ success, failures }: Result, beside: readonly PlainField[]) {
  const types = new Map(beside.map(({ name, type }) => [name, String(type)]));
  return {
    success: success.name,
    failures: failures.map((failure) => {
      // Fields of one name and two types cannot be requested together.
      const fields = plainFields(failure).filter(({ name, type }) => {
        if (!types.has(name)) types.set(name, String(type));
        return types.get(name) === String(type);
      });
      return { type: failure.name, selection: namesOf(fields) || '__typename' };
    }),
  };
}

type PlainField = GraphQLField<unknown, unknown>;

function shownFields(type: GraphQLCompositeType): PlainField[] {
  return plainFields(type).slice(0, FIELDS_SHOWN);
}

function plainFields(type: GraphQLCompositeType): PlainField[] {
  if (!('getFields' in type)) return [];
  return Object.values(type.getFields()).filter(
    (field) => isLeafType(getNamedType(field.type)) && !field.args.some(isRequiredArgument),
  );
}

function namesOf(fields: readonly PlainField[]): string {
  return fields.map(({ name }) => name).join(' ');
}

function pageInfoFields(page: GraphQLObjectType): string {
  const pageInfo = getNamedType(page.getFields()['pageInfo']?.type);
  return isObjectType(pageInfo) ? namesOf(plainFields(pageInfo)) : 'hasNextPage endCursor';
}
