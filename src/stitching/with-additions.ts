import type { SubschemaConfig } from '@graphql-tools/delegate';
import { stitchSchemas } from '@graphql-tools/stitch';
import type { Executor } from '@graphql-tools/utils';
import {
  assertValidSchema,
  isScalarType,
  isSpecifiedScalarType,
  parse,
  separateOperations,
  validate,
  type DocumentNode,
  type GraphQLSchema,
} from 'graphql';
import { OperatorMistake } from '../errors.ts';
import type { PlannedDocument } from '../plans/operation/plan-operation.ts';
import type { Entity } from '../schema/derived.ts';
import type { ServedSchema } from '../schema/served/served-schema.ts';
import {
  documentsOf,
  mistakeOf,
  mistakesAfter,
  mistakesBefore,
  type AddedParts,
} from './addition-mistakes.ts';
import type { Additions } from './additions.ts';
import { withinLimit } from './delegations.ts';
import { exactLiteral } from './exact-values.ts';
import { limitLists, requiringSomething } from './own-resolvers.ts';
import { selectsField } from './selects-field.ts';

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
 * @param executor of the served schema; undefined: no operation is ever executed
 * @returns undefined if nothing is added
 * @throws OperatorMistake
 */
export function withAdditions(
  served: ServedSchema,
  additions: Additions = {},
  executor: Executor = neverExecuted,
): ServedWithAdditions | undefined {
  const { source = 'What is added to the schema' } = additions;
  const added: AddedParts = {
    source,
    documents: documentsOf(additions.typeDefs, source),
    resolvers: [additions.resolvers ?? []].flat(),
    subschemas: additions.subschemas ?? [],
  };
  if (added.documents.length + added.resolvers.length + added.subschemas.length === 0)
    return undefined;
  refuse(source, mistakesBefore(served.schema, added));
  const schema = stitched(served, added, executor);
  refuse(source, mistakesAfter(served.schema, schema, added));
  const fields = fieldsOf(added);
  limitLists(schema, fields);
  const replaced = new Set([...fields].filter((field) => isServed(served.schema, field)));
  return {
    ...served,
    schema,
    fields,
    subgraphSdl: once(() => served.subgraphSdl(schema)),
    touches: ({ document, operation }) => {
      const own = separateOperations(document)[operation.name?.value ?? ''] ?? document;
      return validate(served.schema, own).length > 0 || selectsField(served.schema, own, replaced);
    },
  };
}

function refuse(source: string, mistakes: readonly string[]): void {
  if (mistakes.length > 0) throw mistakeOf(source, mistakes);
}

function stitched(
  served: ServedSchema,
  { source, documents, resolvers, subschemas }: AddedParts,
  executor: Executor,
): GraphQLSchema {
  const own: SubschemaConfig = {
    name: SERVED,
    schema: served.schema,
    executor,
    merge: Object.fromEntries(
      served.entities.flatMap(({ type, lookup }) => (lookup ? [[type.name, byEntity(type)]] : [])),
    ),
  };
  try {
    const schema = stitchSchemas({
      subschemas: [own, ...subschemas],
      typeDefs: [rootsOf(served.schema), ...documents],
      resolvers: resolvers.map((one) => requiringSomething(served.schema, one)),
      inheritResolversFromInterfaces: true,
      subschemaConfigTransforms: [(config) => [config === own ? own : withinLimit(config)]],
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
    throw mistakeOf(source, [message.replace(/\.?$/, '.')]);
  }
}

/** The name of the served schema among the subschemas. */
const SERVED = 'recruiting';

function byEntity({ name }: Entity['type']) {
  return {
    // What other subschemas say about its type does not change it.
    canonical: true,
    selectionSet: '{ id }',
    fieldName: '_entities',
    key: ({ id }: { readonly id: unknown }) => ({ __typename: name, id }),
    argsFromKeys: (representations: readonly unknown[]) => ({ representations }),
  };
}

/** Without these, stitching would rename the root types to `Query` and `Mutation`. */
function rootsOf(schema: GraphQLSchema): DocumentNode {
  const [query, mutation] = [schema.getQueryType(), schema.getMutationType()];
  return parse(`schema { query: ${query!.name} ${mutation ? `mutation: ${mutation.name}` : ''} }`);
}

function fieldsOf({ documents, resolvers }: AddedParts): ReadonlySet<string> {
  const fields = new Set(
    resolvers
      .flatMap((one) => Object.entries(one))
      .flatMap(([type, own]) => Object.keys(own).map((field) => `${type}.${field}`)),
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
  const [name = '', field = ''] = coordinate.split('.');
  const type = schema.getType(name);
  return type !== undefined && 'getFields' in type && field in type.getFields();
}

const neverExecuted: Executor = () => {
  throw new OperatorMistake('This schema was made to be looked at. It cannot be executed.');
};

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
