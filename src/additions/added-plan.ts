import { parseSelectionSet } from '@graphql-tools/utils';
import {
  execute,
  GraphQLError,
  specifiedDirectives,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type FieldNode,
  type GraphQLSchema,
  type InlineFragmentNode,
} from 'graphql';
import type { AnswerError } from '../engine/answer.ts';
import type { Plan } from '../engine/plan.ts';
import { fragmentNode, isCondition } from '../engine/syntax.ts';
import { codedError, errorsThrown } from '../errors.ts';
import { fieldAt } from '../schema/derived.ts';
import type { NamedDocument } from '../schema/field-scopes.ts';
import { isIncremental } from '../schema/incremental-directives.ts';
import type { ServedSchema } from '../schema/served/served-schema.ts';
import { onlyOperation } from '../schema/selections.ts';
import { DelegatedError } from './subschema-executors.ts';
import { Execution } from './execution.ts';
import { isRequirementKey } from './requirements.ts';

/**
 * Plans an operation that touches an addition: graphql-js executes it over the stitched schema. It is always answered
 * whole.
 *
 * @throws BAD_USER_INPUT, OPERATION_TOO_COMPLEX
 */
export function addedPlan(
  schema: GraphQLSchema,
  served: Pick<ServedSchema, 'schema' | 'snapshot'>,
  planned: NamedDocument,
): Plan {
  const { document } = onlyOperation(planned.document, planned.operation);
  checkOperation(document, served.snapshot);
  const executed = prepared(document, schema, served.schema);
  return {
    answer: async (call) => {
      const execution = new Execution(call);
      const { data, errors = [] } = await execute({
        schema,
        document: executed,
        variableValues: call.variables.sent,
        contextValue: execution.context,
      });
      return { data, errors: [...errors.flatMap(answerErrors), ...execution.unplaced] };
    },
    stream: () => undefined,
  };
}

/** Refuses what graphql-js and graphql-tools would leave out of what they delegate. */
function checkOperation(document: DocumentNode, snapshot: GraphQLSchema): void {
  const specified = specifiedDirectives.map(({ name }) => name);
  visit(document, {
    Directive: ({ name: { value } }) => {
      if (specified.includes(value) || !snapshot.getDirective(value)) return;
      throw codedError(
        'BAD_USER_INPUT',
        `@${value} cannot be used in an operation that selects a field that was added to this gateway. ` +
          'Send the fields of the service in an operation of their own.',
      );
    },
    IntValue: ({ value }) => {
      if (Number.isSafeInteger(Number(value))) return;
      throw codedError(
        'BAD_USER_INPUT',
        `${value} has more digits than this operation can keep, because it selects a field that was added to this gateway. Send it as a variable.`,
      );
    },
  });
}

/**
 * Changes an operation so that graphql-tools delegates all of it: conditions of fields become fragments, since it leaves
 * out a field if another one with its key selects the same or more, whatever their conditions are; and what added fields
 * select becomes a fragment, because of an object that a resolver returns it requests added fields, with what they
 * require, only there.
 */
function prepared(
  document: DocumentNode,
  schema: GraphQLSchema,
  served: GraphQLSchema,
): DocumentNode {
  const types = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(types, {
      // With it, graphql-tools does not ask second services.
      Directive: (node) => (isIncremental(node) ? null : undefined),
      SelectionSet: {
        leave: (node) => ({ ...node, selections: [NEVER_EMPTY, ...node.selections] }),
      },
      Field: {
        leave: (node) => {
          const isServed = fieldAt(served, types.getParentType()!.name, node.name.value);
          if (isServed || !node.selectionSet) return conditionsAround(node);
          const delegated = fragmentNode(undefined, node.selectionSet.selections);
          const selectionSet = { ...node.selectionSet, selections: [NEVER_EMPTY, delegated] };
          return conditionsAround({ ...node, selectionSet });
        },
      },
    }),
  );
}

/**
 * Selects nothing, but makes graphql-tools request `__typename` of the object. If all that is selected was added, and
 * requires nothing, its request would be empty. A fragment that is empty would be spread, but not defined.
 */
const NEVER_EMPTY = parseSelectionSet('{ __typename @include(if: false) }', { noLocation: true })
  .selections[0]!;

function conditionsAround(field: FieldNode): FieldNode | InlineFragmentNode {
  const conditions = field.directives?.filter(isCondition) ?? [];
  if (conditions.length === 0) return field;
  return fragmentNode(undefined, [field], conditions);
}

/** One value can fail for several reasons. */
function answerErrors(error: GraphQLError): readonly AnswerError[] {
  let thrown: Error = error;
  while (thrown instanceof GraphQLError && !(thrown instanceof DelegatedError)) {
    if (!thrown.originalError) break;
    thrown = thrown.originalError;
  }
  return errorsThrown(thrown).map((cause) => answerError(cause, error));
}

function answerError(cause: unknown, located: GraphQLError): AnswerError {
  if (!(cause instanceof DelegatedError)) {
    return { thrown: cause, path: located.path };
  }
  // A caller does not know the keys of requirements.
  const ours = cause.rest.findIndex(isRequirementKey);
  const rest = ours < 0 ? cause.rest : cause.rest.slice(0, ours);
  return { ...cause.error, path: [...(located.path ?? []), ...rest] };
}
