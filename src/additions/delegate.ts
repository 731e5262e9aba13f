import type { ExecutionRequest } from '@graphql-tools/utils';
import { OperationTypeNode, type GraphQLSchema } from 'graphql';
import type { Answer } from '../engine/answer.ts';
import type { Call } from '../engine/call.ts';
import type { Plan } from '../engine/plan.ts';
import { codedError } from '../errors.ts';
import type { Operations } from '../operations/operations.ts';
import { coerceVariables } from '../operations/variables.ts';
import { enforceScopes } from '../schema/field-scopes.ts';
import { executionWith, valuesIn } from './execution.ts';
import { isRequirement } from './requirements.ts';

/** Answers an operation of the served schema for the caller whose context it carries. @throws coded errors */
export type Delegate = (request: ExecutionRequest) => Promise<Answer>;

/** The operations of a schema. */
export interface SchemaOperations {
  readonly schema: GraphQLSchema;
  readonly operations: Operations<Plan>;
}

/**
 * Answers what is delegated by plans, with the scopes and the budgets of the caller: a resolver must not do for callers
 * what they may not do themselves.
 */
export function delegateTo(parts: SchemaOperations): Delegate {
  return async (request) => {
    const execution = executionWith(request.context);
    if (!execution) throw withoutCaller();
    const { call: whole } = execution;
    const { plan, variables } = checkedFor(parts, request, whole.origin.caller);
    let drained = 0;
    const onDrained = (records: Buffer) => {
      drained += valuesIn(JSON.parse(`[${String(records)}]`));
      execution.checkRoom(drained);
    };
    return plan.answer(whole.delegate(variables, onDrained));
  };
}

/**
 * Finds an operation that does not come as a request: of a resolver, or of the program around the library. Its errors,
 * scopes and variables are checked as those of requests are. Limits are not, since no caller wrote its text.
 *
 * @throws coded errors
 */
export function checkedFor(
  { schema, operations }: SchemaOperations,
  { document, operationName, variables = {} }: ExecutionRequest,
  caller: Call['origin']['caller'],
) {
  const operation = operations.findDocument(document, operationName);
  const invalid = operation.errors();
  if (invalid.length > 0) throw new AggregateError(invalid);
  // What a resolver requires was checked with the operation that delegates, and the key of a merge is not shown.
  const ownUses = operation.scopedUses.filter(({ node }) => !isRequirement(node));
  const isMutation = operation.type === OperationTypeNode.MUTATION;
  const root = isMutation
    ? { place: 'Mutation', scope: 'write' }
    : { place: 'Query', scope: 'read' };
  enforceScopes([root, ...ownUses], caller);
  const { plan } = operation;
  const sent = variables as Readonly<Record<string, unknown>>;
  return { plan, variables: coerceVariables(operation.operation, sent, { schema }) };
}

function withoutCaller() {
  return codedError(
    'UNAUTHENTICATED',
    'This operation has no caller. Pass the context of the request, which resolvers get as their third argument, to delegateToSchema or the executor.',
  );
}
