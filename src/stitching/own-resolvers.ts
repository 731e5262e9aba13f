import { isExternalObject } from '@graphql-tools/delegate';
import { isPromise, type IResolvers } from '@graphql-tools/utils';
import {
  defaultFieldResolver,
  getNullableType,
  isInterfaceType,
  isListType,
  isObjectType,
  type GraphQLSchema,
} from 'graphql';
import { countOwn } from './delegations.ts';

/**
 * Has each resolver of a served type require something: where an operation selects nothing else, graphql-tools would
 * delegate an empty selection.
 */
export function requiringSomething(served: GraphQLSchema, resolvers: IResolvers): IResolvers {
  const roots = [served.getQueryType(), served.getMutationType()].map((root) => root?.name);
  const entries = Object.entries(resolvers).map(([name, fields]) => {
    const type = served.getType(name);
    const isRecord = (isObjectType(type) || isInterfaceType(type)) && !roots.includes(name);
    return [name, isRecord ? mapFields(fields) : fields] as const;
  });
  return Object.fromEntries(entries);
}

function mapFields(fields: object): object {
  const entries = Object.entries(fields).map(([name, resolver]: [string, unknown]) => {
    if (name.startsWith('__')) return [name, resolver];
    if (typeof resolver === 'function') return [name, { ...SOMETHING, resolve: resolver }];
    return [name, { ...SOMETHING, ...(resolver as object) }];
  });
  return Object.fromEntries(entries) as object;
}

const SOMETHING = { selectionSet: '{ __typename }' };

/**
 * Counts the values of lists that resolvers return, like those that are read: graphql-js completes a list of any length
 * without a pause.
 *
 * @param fields those of a company, as `Type.field`
 */
export function limitLists(schema: GraphQLSchema, fields: ReadonlySet<string>): void {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      if (!fields.has(`${type.name}.${field.name}`)) continue;
      if (!isListType(getNullableType(field.type))) continue;
      const { resolve = defaultFieldResolver } = field;
      field.resolve = (parent, args, context, info) => {
        const selected = info.fieldNodes.map((node) => node.selectionSet?.selections.length ?? 1);
        const each = selected.reduce((sum, count) => sum + count, 0);
        const counted = (value: unknown) => withinCount(value, each, context as object);
        const value: unknown = resolve(parent, args, context, info);
        return isPromise(value) ? value.then(counted) : counted(value);
      };
    }
  }
}

/**
 * Counts a list and those in it. Records of a delegation were counted when they were read.
 *
 * @param each how much a value of the list counts
 * @returns the list; as an array, if it was drawn from something else
 * @throws OPERATION_TOO_COMPLEX
 */
function withinCount(value: unknown, each: number, context: object): unknown {
  if (!isIterableObject(value)) return value;
  if (!Array.isArray(value)) {
    const drawn: unknown[] = [];
    for (const one of value) {
      countOwn(context, each);
      drawn.push(one);
    }
    return drawn;
  }
  const list: readonly unknown[] = value;
  if (isExternalObject(list[0])) return list;
  countOwn(context, list.length * each);
  return isIterableObject(list[0]) ? list.map((one) => withinCount(one, each, context)) : list;
}

function isIterableObject(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}
