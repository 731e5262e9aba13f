import { isExternalObject } from '@graphql-tools/delegate';
import { isPromise, type IResolvers } from '@graphql-tools/utils';
import {
  defaultFieldResolver,
  getNullableType,
  isInterfaceType,
  isIntrospectionType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  type GraphQLList,
  type GraphQLOutputType,
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
 * without a pause. And keeps it from forgetting promises, in any list: a rejection that nobody handles ends the process.
 *
 * @param fields those of a company, as `Type.field`
 */
export function limitLists(schema: GraphQLSchema, fields: ReadonlySet<string>): void {
  for (const type of Object.values(schema.getTypeMap())) {
    // All schemas share the types of introspection.
    if (!isObjectType(type) || isIntrospectionType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      const list = getNullableType(field.type);
      if (!isListType(list)) continue;
      const isOwn = fields.has(`${type.name}.${field.name}`);
      if (!isOwn && !hasRequiredItems(list)) continue;
      const { resolve = defaultFieldResolver } = field;
      field.resolve = (parent, args, context, info) => {
        const selected = info.fieldNodes.map((node) => node.selectionSet?.selections.length ?? 1);
        const each = selected.reduce((sum, count) => sum + count, 0);
        const complete = (value: unknown) =>
          failingLater(isOwn ? counted(value, each, context as object) : value, list);
        const value: unknown = resolve(parent, args, context, info);
        return isPromise(value) ? value.then(complete) : complete(value);
      };
    }
  }
}

function counted(value: unknown, each: number, context: object): unknown {
  try {
    return withinCount(value, each, context);
  } catch (error) {
    handleRejections(value);
    throw error;
  }
}

function hasRequiredItems({ ofType: item }: GraphQLList<GraphQLOutputType>): boolean {
  const inner = getNullableType(item);
  return isNonNullType(item) || (isListType(inner) && hasRequiredItems(inner));
}

/**
 * Makes promises of the items of a list, if they must not be null. Where one of them fails at once, graphql-js 16 leaves
 * the list, and forgets the items before it, which may be rejected later.
 */
function failingLater(value: unknown, { ofType: item }: GraphQLList<GraphQLOutputType>): unknown {
  if (!Array.isArray(value)) return value;
  const inner = getNullableType(item);
  const items: readonly unknown[] = isListType(inner)
    ? value.map((one: unknown) =>
        isPromise(one) ? one.then((list) => failingLater(list, inner)) : failingLater(one, inner),
      )
    : value;
  if (!isNonNullType(item) || (isLeafType(inner) && !items.some(isPromise))) return items;
  return items.map((one) => Promise.resolve(one));
}

/** For promises in a list that is not used. */
function handleRejections(value: unknown): void {
  if (value instanceof Promise) value.catch(() => {});
  else if (Array.isArray(value)) for (const one of value) handleRejections(one);
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
      // It can only be drawn once.
      handleRejections(one);
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
