import { isExternalObject, type SubschemaConfig } from '@graphql-tools/delegate';
import { stitchSchemas } from '@graphql-tools/stitch';
import { isPromise, type IResolvers, type Executor } from '@graphql-tools/utils';
import {
  defaultFieldResolver,
  getNullableType,
  isInterfaceType,
  isIntrospectionType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type FieldNode,
  type GraphQLField,
  type GraphQLList,
  type GraphQLOutputType,
  type GraphQLSchema,
  assertValidSchema,
  isScalarType,
  isSpecifiedScalarType,
  parse,
  validate,
} from 'graphql';
import { OperatorMistake, OperatorMistakes } from '../errors.ts';
import { missingNeeds, missingScopeAt, type PlannedDocument } from '../plans/planner.ts';
import { fieldAt, type Entity } from '../schema/derived.ts';
import { guardMistakes, isMissing } from '../schema/derivation/check-overrides.ts';
import { OverridesError } from '../schema/derivation/overrides.ts';
import {
  addScopes,
  needsIn,
  scopeNames,
  scopesOf,
  scopesOfFragment,
  type FieldScopes,
} from '../schema/field-scopes.ts';
import { rootsOf, type ServedSchema } from '../schema/served/served-schema.ts';
import { onlyOperation } from '../selections.ts';
import {
  documentsOf,
  mistakesAfter,
  mistakesBefore,
  requirements,
  type AddedParts,
} from './addition-mistakes.ts';
import type { Additions } from './additions.ts';
import { countResolved, withinLimit, exactLiteral } from './delegations.ts';
import { selectsField } from './private-keys.ts';

/**
 * Makes each resolver of a served type require a field: if an operation selects nothing else, graphql-tools would
 * otherwise delegate an empty selection.
 */
function requiringSomething(served: GraphQLSchema, resolvers: IResolvers): IResolvers {
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
 * without a pause. Also keeps graphql-js from forgetting promises in lists: an unhandled rejection ends the process.
 *
 * @param fields the fields of a company, as `Type.field`
 */
function limitLists(schema: GraphQLSchema, fields: ReadonlySet<string>): void {
  for (const type of Object.values(schema.getTypeMap())) {
    // All schemas share the types of introspection.
    if (!isObjectType(type) || isIntrospectionType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      const list = getNullableType(field.type);
      if (!isListType(list)) continue;
      const isAdded = fields.has(`${type.name}.${field.name}`);
      if (!isAdded && !hasRequiredItems(list)) continue;
      const { resolve = defaultFieldResolver } = field;
      field.resolve = (parent, args, context, info) => {
        const selected = info.fieldNodes.map((node) => node.selectionSet?.selections.length ?? 1);
        const each = selected.reduce((sum, count) => sum + count, 0);
        const complete = (value: unknown) =>
          failingLater(isAdded ? counted(value, each, context as object) : value, list);
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
 * Turns the items of a list into promises, if they must not be null. If one of them failed synchronously, graphql-js 16
 * would leave the list and forget the items before it, which may be rejected later.
 */
function failingLater(value: unknown, { ofType: item }: GraphQLList<GraphQLOutputType>): unknown {
  if (!Array.isArray(value)) return value;
  const inner = getNullableType(item);
  const items: readonly unknown[] = isListType(inner)
    ? value.map((element: unknown) =>
        isPromise(element)
          ? element.then((list) => failingLater(list, inner))
          : failingLater(element, inner),
      )
    : value;
  if (!isNonNullType(item) || (isLeafType(inner) && !items.some(isPromise))) return items;
  return items.map((element) => Promise.resolve(element));
}

/** Handles the rejections of promises in a list that is not used. */
function handleRejections(value: unknown): void {
  if (value instanceof Promise) value.catch(() => {});
  else if (Array.isArray(value)) for (const item of value) handleRejections(item);
}

/**
 * Counts a list and those in it. Records of a delegation were counted when they were read.
 *
 * @param each how much a value of the list counts
 * @returns the list; an array if it was another iterable
 * @throws OPERATION_TOO_COMPLEX
 */
function withinCount(value: unknown, each: number, context: object): unknown {
  if (!isIterableObject(value)) return value;
  if (!Array.isArray(value)) {
    const drawn: unknown[] = [];
    for (const item of value) {
      // An iterable can be read only once.
      handleRejections(item);
      countResolved(context, each);
      drawn.push(item);
    }
    return drawn;
  }
  const list: readonly unknown[] = value;
  if (isExternalObject(list[0])) return list;
  countResolved(context, list.length * each);
  return isIterableObject(list[0]) ? list.map((item) => withinCount(item, each, context)) : list;
}

function isIterableObject(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

/**
 * Gives added types and fields the scopes that adapters.json has for them. Added fields also get those of the
 * fields that they require, because their values are made of these.
 */
function withScopesOfAdditions(
  schema: GraphQLSchema,
  served: ServedSchema,
  added: AddedParts,
): FieldScopes {
  const places = new Map(served.scopes.places);
  for (const entry of served.guardsOfAdditions) addScopes(places, entry.place, scopesOf(entry));
  if (places.size === 0) return served.scopes;
  const required = requirements(added).flatMap(({ type, field, selectionSet }) => {
    if (field === undefined) return [];
    const parent = schema.getType(type);
    const types = isInterfaceType(parent) ? schema.getPossibleTypes(parent) : [{ name: type }];
    return types.map(({ name }) => ({
      place: `${name}.${field}`,
      fragment: parse(`fragment Required on ${name} ${selectionSet}`),
    }));
  });
  // A required field may be an added field too.
  let grows = true;
  while (grows) {
    grows = false;
    for (const { place, fragment } of required) {
      grows = addScopes(places, place, scopesOfFragment(schema, places, fragment)) || grows;
    }
  }
  return { names: scopeNames(places), places };
}

/** @throws OverridesError */
function checkGuards(
  { guardsOfAdditions, upstream, schema: servedSchema }: ServedSchema,
  schema: GraphQLSchema,
): void {
  const mistakes = guardsOfAdditions.flatMap((entry) =>
    // adapters.json cannot have entries for derived fields.
    isMissing(servedSchema, entry)
      ? guardMistakes(schema, entry, 'the schema')
      : guardMistakes(upstream, entry, 'the service'),
  );
  if (mistakes.length > 0) throw new OverridesError(mistakes);
}

/**
 * Refuses fields whose scope the caller lacks, even if a resolver of the company or another service with the same type
 * answers them.
 */
function guardFields(
  schema: GraphQLSchema,
  scopes: FieldScopes,
  callerOf: ExecutionParts['callerOf'],
): void {
  if (scopes.names.size === 0) return;
  const needsOf = needsIn(schema, scopes);
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || isIntrospectionType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      if (needsOf(type, nodeOf(field)).length === 0) continue;
      const { resolve = defaultFieldResolver } = field;
      field.resolve = (parent, args, context, info) => {
        const uses = info.fieldNodes.map((node) => ({ node, needs: needsOf(type, node) }));
        const [missing] = missingNeeds(uses, callerOf(context as object));
        if (missing) throw missingScopeAt(missing);
        return resolve(parent, args, context, info);
      };
    }
  }
}

function nodeOf({ name }: GraphQLField<unknown, unknown>): FieldNode {
  return { kind: Kind.FIELD, name: { kind: Kind.NAME, value: name } };
}

/** What operations are executed with. */
interface ExecutionParts {
  /** Executes operations of the served schema. */
  readonly executor: Executor;
  /** The caller of the operation with this context; undefined if it needs no credential. */
  readonly callerOf: (context: object) => { readonly scopes: ReadonlySet<string> } | undefined;
}

/** The served schema with what a company adds. */
export interface ServedWithAdditions extends ServedSchema {
  /** The fields that resolvers of the company answer, as `Type.field`. */
  readonly fields: ReadonlySet<string>;
  /** Whether an operation, which is valid, needs anything that was added. */
  readonly touches: (planned: PlannedDocument) => boolean;
}

/**
 * Stitches what a company adds to the served schema, which is one subschema among others: its records are merged with
 * those of other subschemas by its entities, in batches.
 *
 * @returns undefined if nothing is added
 * @throws OperatorMistake
 */
export function withAdditions(
  served: ServedSchema,
  additions: Additions = {},
  { executor, callerOf }: ExecutionParts = NEVER_EXECUTED,
): ServedWithAdditions | undefined {
  const { source = 'What is added to the schema' } = additions;
  const added: AddedParts = {
    source,
    documents: documentsOf(additions.typeDefs, source),
    resolvers: [additions.resolvers ?? []].flat(),
    subschemas: additions.subschemas ?? [],
  };
  if (added.documents.length + added.resolvers.length + added.subschemas.length === 0) {
    checkGuards(served, served.schema);
    return undefined;
  }
  refuse(source, mistakesBefore(served.schema, added));
  const schema = stitched(served, added, executor);
  refuse(source, mistakesAfter(served.schema, schema, added));
  checkGuards(served, schema);
  const fields = fieldsOf(added);
  limitLists(schema, fields);
  const scopes = withScopesOfAdditions(schema, served, added);
  guardFields(schema, scopes, callerOf);
  const replaced = new Set([...fields].filter((field) => isServed(served.schema, field)));
  return {
    ...served,
    schema,
    fields,
    scopes,
    subgraphSdl: () => served.subgraphSdl({ schema, scopes }),
    touches: (planned) => {
      const { document } = onlyOperation(planned.document, planned.operation);
      return (
        validate(served.schema, document).length > 0 ||
        selectsField(served.schema, document, replaced)
      );
    },
  };
}

function refuse(source: string, mistakes: readonly string[]): void {
  if (mistakes.length > 0) throw new OperatorMistakes(source, mistakes);
}

function stitched(
  served: ServedSchema,
  { source, documents, resolvers, subschemas }: AddedParts,
  executor: Executor,
): GraphQLSchema {
  const service: SubschemaConfig = {
    name: SERVED,
    schema: served.schema,
    executor,
    merge: Object.fromEntries(
      served.entities.flatMap(({ type, lookup }) => (lookup ? [[type.name, byEntity(type)]] : [])),
    ),
  };
  try {
    const schema = stitchSchemas({
      subschemas: [service, ...subschemas],
      typeDefs: [rootsOf(served.schema), ...documents],
      resolvers: resolvers.map((map) => requiringSomething(served.schema, map)),
      inheritResolversFromInterfaces: true,
      subschemaConfigTransforms: [(config) => [config === service ? service : withinLimit(config)]],
    });
    schema.description = served.schema.description;
    assertValidSchema(schema);
    for (const type of Object.values(served.schema.getTypeMap())) {
      const known = schema.getType(type.name);
      if (isScalarType(known) && !isSpecifiedScalarType(known)) known.parseLiteral = exactLiteral;
    }
    return schema;
  } catch (error) {
    const { message } = error as Error;
    throw new OperatorMistakes(source, [message.replace(/\.?$/, '.')]);
  }
}

/** The name of the served schema among the subschemas. */
const SERVED = 'recruiting';

function byEntity({ name }: Entity['type']) {
  return {
    // The type's description and directives are those of this subschema.
    canonical: true,
    selectionSet: '{ id }',
    fieldName: '_entities',
    key: ({ id }: { readonly id: unknown }) => ({ __typename: name, id }),
    argsFromKeys: (representations: readonly unknown[]) => ({ representations }),
  };
}

function fieldsOf({ documents, resolvers }: AddedParts): ReadonlySet<string> {
  const fields = new Set(
    resolvers
      .flatMap((map) => Object.entries(map))
      .flatMap(([type, resolved]) => Object.keys(resolved).map((field) => `${type}.${field}`)),
  );
  for (const definition of documents.flatMap((document) => document.definitions)) {
    if (!('fields' in definition)) continue;
    for (const { name } of definition.fields ?? []) {
      fields.add(`${definition.name.value}.${name.value}`);
    }
  }
  return fields;
}

function isServed(schema: GraphQLSchema, coordinate: string): boolean {
  const [type = '', field = ''] = coordinate.split('.');
  return fieldAt(schema, type, field) !== undefined;
}

const NEVER_EXECUTED: ExecutionParts = {
  executor: () => {
    throw new OperatorMistake('This schema is only for printing. It cannot be executed.');
  },
  callerOf: () => undefined,
};
