import type { ExecutionRequest, ExecutionResult, Executor } from '@graphql-tools/utils';
import {
  getVariableValues,
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import { resultOf, type Answer } from './answer.ts';
import type { Call } from './call.ts';
import type { Plan } from './plan.ts';

export interface PlanExecutorParts {
  readonly schema: GraphQLSchema;
  /** Finds and checks an operation as one of the caller itself. @throws coded errors */
  readonly find: (
    document: DocumentNode,
    operationName: string | undefined,
    call: Call,
  ) => PlannedOperation;
  /** The call of the operation that is answered with this context. */
  readonly callWith: (context: object | undefined) => Call | undefined;
}

interface PlannedOperation {
  readonly operation: OperationDefinitionNode;
  readonly plan: Plan;
}

/**
 * Makes the plans an `Executor` of graphql-tools: it executes any operation of the served schema on behalf of the caller
 * whose context it carries, with the budgets of that caller's operation. Without such a context it is refused. The
 * values belong to whoever asked, and each error is a fresh one.
 */
export function planExecutor(parts: PlanExecutorParts): Executor {
  return async (request: ExecutionRequest): Promise<ExecutionResult> => {
    return resultOf(await answerTo(parts, request));
  };
}

/** Does the same, and returns the answer. */
export async function answerTo(
  { schema, find, callWith }: PlanExecutorParts,
  { document, variables = {}, operationName, context }: ExecutionRequest,
): Promise<Answer> {
  const whole = callWith(context as object | undefined);
  if (!whole) return refused([withoutCaller()]);
  try {
    const { operation, plan } = find(document, operationName, whole);
    const { variableDefinitions = [] } = operation;
    const sent = variables as Readonly<Record<string, unknown>>;
    const { errors, coerced } = getVariableValues(schema, variableDefinitions, sent);
    if (!coerced) return refused(errors);
    return await plan.answer(whole.delegate({ values: coerced, sent }));
  } catch (error) {
    return refused([error]);
  }
}

function refused(errors: readonly unknown[]): Answer {
  return { data: undefined, errors: errors.map((thrown) => ({ thrown, path: undefined })) };
}

function withoutCaller() {
  return codedError(
    'UNAUTHENTICATED',
    'This operation has no caller. Pass the context of the request, which resolvers get as their third argument, to delegateToSchema or the executor.',
  );
}
