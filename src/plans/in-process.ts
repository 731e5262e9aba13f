import { isAsyncIterable, type ExecutionRequest, type ExecutionResult } from '@graphql-tools/utils';
import type { Call, CallVariables } from './call.ts';
import type { PlansExecutor } from './executor.ts';
import type { Planner } from './planner.ts';

/** Executes an operation, in parts if it has `@defer` or `@stream`. What fails is a result with errors. */
export type InProcessExecutor = (
  request: ExecutionRequest,
) => Promise<ExecutionResult | AsyncIterable<ExecutionResult>>;

/**
 * Also executes what has no caller: operations of the program around the gateway. They need no scope, and each has a
 * context of its own. Together they have the budget of one caller.
 */
export function inProcess(
  { executor }: Pick<PlansExecutor, 'executor'>,
  planner: Pick<Planner, 'createCall' | 'admit' | 'callWith'>,
): InProcessExecutor {
  return async (request) => {
    const given = request.context as object | undefined;
    if (given && planner.callWith(given)) return await executor(request);
    const context = { ...given };
    const signal = request.signal ?? request.info?.signal ?? new AbortController().signal;
    const origin = { budgetOwner: OWNER, cause: undefined, context, signal };
    const call = planner.createCall(NO_VARIABLES, origin);
    planner.admit(call);
    const result = await executor({ ...request, context });
    if (isAsyncIterable(result)) return untilRead(result, call);
    call.end();
    return result;
  };
}

/** The prefixes of callers with a credential, and the addresses of others, are different. */
const OWNER = { name: 'in-process', mayDrain: true };

/** Those of the operation are given to the plans executor, which coerces them. */
const NO_VARIABLES: CallVariables = {
  values: {},
  text: () => undefined,
  given: () => undefined,
};

async function* untilRead(
  parts: AsyncIterable<ExecutionResult>,
  call: Call,
): AsyncGenerator<ExecutionResult, void, undefined> {
  try {
    yield* parts;
  } finally {
    call.end();
  }
}
