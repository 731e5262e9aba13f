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

/** One list as examples of requests need it. */
export type DescribedList = ReturnType<typeof describeLists>[number];

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
        all: all && { field: all.field, limit: all.limit },
        connection: connection && {
          field: connection.field,
          after: connection.after,
          last: connection.last,
        },
        /** The fragments for a page that is one type of a result. */
        result: result && describeResult(result, Object.values(pageType.getFields())),
        record: entity?.lookup && describeRecord(entity, entity.lookup),
        /** The fields to request of each record: `id firstName`. */
        selection: namesOf(plainFields(nodeType).slice(0, FIELDS_SHOWN)) || '__typename',
        /** The fields to request of the service's page information. */
        pageInfo: pageInfoFields(pageType),
      };
    });
}

/** The field that finds one record; undefined if only a result of the service has it. */
function describeRecord({ field, idType }: Entity, lookup: NonNullable<Entity['lookup']>) {
  if (lookup.kind === 'id' && !lookup.result) {
    const { name, type } = lookup.argument;
    return { field: lookup.field, argument: name, idType: String(type) };
  }
  return field === undefined ? undefined : { field, argument: 'id', idType: `${String(idType)}!` };
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
