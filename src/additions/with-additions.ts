import type { SubschemaConfig } from '@graphql-tools/delegate';
import { stitchSchemas } from '@graphql-tools/stitch';
import {
  assertValidSchema,
  isLeafType,
  parse,
  validate,
  visit,
  type DocumentNode,
  type GraphQLSchema,
} from 'graphql';
import type { Plan } from '../engine/plan.ts';
import { OperatorMistake, OperatorMistakes } from '../errors.ts';
import type { Entity } from '../schema/derived.ts';
import { fieldScopes, type NamedDocument } from '../schema/field-scopes.ts';
import type { ServedSchema } from '../schema/served/served-schema.ts';
import { subgraphSdl } from '../schema/served/subgraph-sdl.ts';
import { addedPlan } from './added-plan.ts';
import type { AddedParts, Additions } from './additions.ts';
import type { Delegate } from './delegate.ts';
import { ofOtherService, servedExecutor } from './subschema-executors.ts';
import { mistakesIn } from './mistakes.ts';
import { mergedUnderOurKeys, requirementsOf } from './requirements.ts';
import { guardFields, preparedResolvers } from './resolvers.ts';

/**
 * Stitches what a company adds to the served schema, which is one subschema among others. Its records are merged with
 * those of other subschemas, and with what resolvers return, by its entities, in batches.
 *
 *   what a caller sends ── graphql-js ── resolvers of the company
 *                              └── graphql-tools ── other services
 *                                        └── `delegate`: operations of the served schema, answered by their plans
 *
 * The scopes of an operation are checked once, before it is executed, with those of all that its added fields require.
 *
 * @param delegate answers operations of the served schema; undefined: the schema is only printed
 * @returns what callers see
 * @throws OperatorMistake
 */
export function withAdditions(
  served: ServedSchema,
  additions: Additions = {},
  delegate: Delegate = neverExecuted,
) {
  const added = partsOf(additions);
  const { source, documents, resolvers, subschemas } = added;
  const isEmpty = documents.length + resolvers.length + subschemas.length === 0;
  const schema = isEmpty ? served.schema : stitched(served, added, delegate);
  const mistakes = mistakesIn(served.schema, schema, added);
  if (mistakes.length > 0) throw new OperatorMistakes(source, mistakes);
  const scopes = fieldScopes(schema, { ...served, requirements: requirementsOf(added) });
  return {
    ...served,
    schema,
    scopes,
    /** Writes the SDL from which a supergraph is composed. */
    subgraphSdl: () => subgraphSdl({ ...served, schema, scopes }),
    /**
     * Whether an operation, which is valid, or another one of its document needs anything that was added. All others are
     * for the plans. What was added is not in the served schema, so an operation that needs it is not valid there. A root
     * type that is not there is no error of validation.
     */
    touches: ({ document, operation }: NamedDocument): boolean =>
      !isEmpty &&
      (!served.schema.getRootType(operation.operation) ||
        validate(served.schema, document).length > 0),
    /** Plans an operation that does. @throws BAD_USER_INPUT, OPERATION_TOO_COMPLEX */
    plan: (planned: NamedDocument): Plan => addedPlan(schema, served, planned),
  };
}

function partsOf({
  source = 'What is added to the schema',
  typeDefs = [],
  resolvers = [],
  subschemas = [],
}: Additions): AddedParts {
  const parts = ([typeDefs] as readonly unknown[]).flat(Infinity) as (string | DocumentNode)[];
  const documents = parts
    .filter((part) => typeof part !== 'string' || part.trim() !== '')
    .map((part) => (typeof part === 'string' ? parsed(source, part) : part));
  return { source, documents, resolvers: [resolvers].flat(), subschemas };
}

function parsed(source: string, typeDefs: string): DocumentNode {
  try {
    return parse(typeDefs);
  } catch (error) {
    throw new OperatorMistakes(source, [`typeDefs: ${(error as Error).message}`]);
  }
}

function neverExecuted(): never {
  throw new OperatorMistake('This schema is only for printing. It cannot be executed.');
}

function stitched(
  { schema: servedSchema, entities }: ServedSchema,
  added: AddedParts,
  delegate: Delegate,
): GraphQLSchema {
  const found = mayReturnRecords(servedSchema, added)
    ? entities.filter(({ lookup }) => lookup)
    : [];
  const service: SubschemaConfig = {
    name: 'recruiting',
    schema: servedSchema,
    executor: servedExecutor(servedSchema, delegate),
    merge: Object.fromEntries(found.map(({ type }) => [type.name, byEntity(type)])),
  };
  const all = [service, ...added.subschemas.map(ofOtherService)];
  try {
    const schema = stitchSchemas({
      subschemas: all.map(mergedUnderOurKeys),
      typeDefs: [rootsOf(servedSchema), ...added.documents],
      resolvers: preparedResolvers(added),
    });
    schema.description = servedSchema.description;
    assertValidSchema(schema);
    guardFields(schema);
    return schema;
  } catch (error) {
    const { message } = error as Error;
    throw new OperatorMistakes(added.source, [message.replace(/\.?$/, '.')]);
  }
}

/** Whether there may be records that are merged. Without, the keys of all others need not be requested. */
function mayReturnRecords(
  served: GraphQLSchema,
  { documents, subschemas }: Pick<AddedParts, 'documents' | 'subschemas'>,
): boolean {
  let may = subschemas.length > 0;
  for (const document of documents) {
    visit(document, {
      NamedType: ({ name }) => void (may ||= !isLeafType(served.getType(name.value))),
    });
  }
  return may;
}

/** Without these, stitching would rename the root types to `Query` and `Mutation`. */
function rootsOf(schema: GraphQLSchema): DocumentNode {
  const mutation = schema.getMutationType();
  return parse(
    `schema { query: ${schema.getQueryType()!.name} ${mutation ? `mutation: ${mutation.name}` : ''} }`,
  );
}

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
