import {
  defaultMergedResolver as resolveMerged,
  isExternalObject,
  type StitchingInfo,
} from '@graphql-tools/delegate';
import { isPromise, type IResolvers } from '@graphql-tools/utils';
import {
  getNullableType,
  isIntrospectionType,
  isLeafType,
  isListType,
  isObjectType,
  isScalarType,
  Kind,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
} from 'graphql';
import { keyOf } from '../engine/syntax.ts';
import type { AddedParts } from './additions.ts';
import { executionWith } from './execution.ts';
import { fitting } from './fitting.ts';
import {
  underOurKeys,
  withMergeKeys,
  withoutPath,
  withPlainNames,
  type Resolver,
  type ResolverConfig,
} from './requirements.ts';

/**
 * Rewrites the resolvers of a company: they get the plain names of what they require, and what they return is counted
 * and prepared for merges. Fields of its own types that have no resolver get one, since they may return the same.
 */
export function preparedResolvers({ documents, resolvers }: AddedParts): IResolvers[] {
  const ownFields = documents
    .flatMap((document) => document.definitions)
    .filter((definition) => definition.kind === Kind.OBJECT_TYPE_DEFINITION)
    .map(({ name, fields = [] }) => {
      const entries = fields.map((field) => [field.name.value, resolveMerged]);
      return [name.value, Object.fromEntries(entries)] as const;
    });
  return [Object.fromEntries(ownFields), ...resolvers].map(
    (map) =>
      mapEntries(map as Entries, (type, fields) => {
        if (!isObject(fields) || isScalarType(fields)) return fields;
        return mapEntries(fields as Entries, (name, field) =>
          isResolver(name, field) ? preparedResolver(type, field) : field,
        );
      }) as IResolvers,
  );
}

type Entries = Readonly<Record<string, unknown>>;

function mapEntries(object: Entries, map: (name: string, value: unknown) => unknown): Entries {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, map(name, value)]),
  );
}

/** Not a special key, such as `__resolveType`, or the value of an enum. */
function isResolver(name: string, field: unknown): field is Resolver | ResolverConfig {
  if (name.startsWith('__')) return false;
  return (
    typeof field === 'function' ||
    (isObject(field) && ('resolve' in field || 'selectionSet' in field))
  );
}

function preparedResolver(type: string, field: Resolver | ResolverConfig): ResolverConfig {
  const config = typeof field === 'function' ? { resolve: field } : field;
  const { selectionSet, resolve = resolveMerged as Resolver } = config;
  return {
    ...config,
    ...(selectionSet !== undefined && { selectionSet: underOurKeys(type, selectionSet) }),
    resolve: (parent, args, context, info) => {
      const plain = selectionSet === undefined ? parent : withPlainNames(type, parent);
      const value = resolve(plain, args, context, info);
      return returned(value, info.returnType, { info, execution: executionWith(context) });
    },
  };
}

interface Returning {
  readonly info: GraphQLResolveInfo;
  readonly execution: ReturnType<typeof executionWith>;
}

function returned(value: unknown, returnType: GraphQLOutputType, returning: Returning): unknown {
  if (isPromise(value)) return value.then((each) => returned(each, returnType, returning));
  const type = getNullableType(returnType);
  if (!isObject(value) || value instanceof Error || isLeafType(type)) return value;
  if (isListType(type)) return returnedList(value, type.ofType, returning);
  const typename: unknown = Reflect.get(value, '__typename');
  const { mergedTypes } = returning.info.schema.extensions['stitchingInfo'] as StitchingInfo;
  const name = typeof typename === 'string' ? typename : type.name;
  return name in mergedTypes ? withMergeKeys(value, name) : value;
}

function returnedList(value: object, type: GraphQLOutputType, returning: Returning): unknown {
  if (!(Symbol.iterator in value)) return value;
  const { info, execution } = returning;
  // graphql-tools does not wait for elements. If the list is refused, nobody else handles their rejections.
  const list = Array.from(value as Iterable<unknown>, (each) =>
    isPromise(each) ? each.then(undefined, errorOf) : each,
  );
  const selected = info.fieldNodes.flatMap((node) => node.selectionSet?.selections ?? []);
  execution?.count(list.length * (1 + selected.length));
  const prepared = (all: readonly unknown[]) => all.map((each) => returned(each, type, returning));
  return list.some(isPromise) ? Promise.all(list).then(prepared) : prepared(list);
}

function errorOf(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/**
 * Checks the values of services where graphql-js completes them, and keeps it from forgetting promises in lists.
 */
export function guardFields(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    // All schemas share the types of introspection.
    if (!isObjectType(type) || isIntrospectionType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      const place = `${type.name}.${field.name}`;
      const resolve = field.resolve === resolveMerged ? ofService(place) : field.resolve;
      const isList = isListType(getNullableType(field.type));
      if (resolve) field.resolve = isList ? settling(resolve, field.type) : resolve;
    }
  }
}

/** @param place as `Type.field` */
function ofService(place: string): Resolver {
  // By this name graphql-tools knows that it need not look for what a resolver requires.
  return function defaultMergedResolver(parent, args, context, info) {
    if (isObject(parent) && isExternalObject(parent)) {
      const key = keyOf(info.fieldNodes[0]!);
      const value = parent[key];
      if (value instanceof Error) throw withoutPath(value);
      if (value !== undefined) {
        parent[key] = fitting(value, info.returnType, place);
      }
    }
    return (resolveMerged as Resolver)(parent, args, context, info);
  };
}

/**
 * Makes promises of the elements of lists. If an element that must not be null fails at once, graphql-js 16 leaves the
 * list, and forgets the promises of the elements before it. An unhandled rejection would end the process.
 */
function settling(resolve: Resolver, type: GraphQLOutputType): Resolver {
  return (parent, args, context, info) => settled(resolve(parent, args, context, info), type);
}

function settled(value: unknown, type: GraphQLOutputType): unknown {
  if (isPromise(value)) return value.then((each) => settled(each, type));
  const list = getNullableType(type);
  if (!Array.isArray(value) || !isListType(list)) return value;
  // As promises, 50,000 numbers would take 0.2 s.
  const isPlain = isLeafType(getNullableType(list.ofType)) && !value.some(isPromise);
  if (isPlain) return value;
  return value.map((each: unknown) => Promise.resolve(settled(each, list.ofType)));
}
