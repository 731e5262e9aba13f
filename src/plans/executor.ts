import {
  isAsyncIterable,
  type ExecutionRequest,
  type ExecutionResult,
  type Executor,
} from '@graphql-tools/utils';
import {
  getVariableValues,
  OperationTypeNode,
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { isOfService, type AnswerError, type Mask } from '../answers/answer-errors.ts';
import { createPayload, createResult } from '../answers/result.ts';
import type { Payload, WholeAnswer } from '../answers/write-answer.ts';
import { codedError, forbidden } from '../errors.ts';
import { Json, losesWriting, parseJson } from '../json.ts';
import type { RequestMemory } from '../memory/byte-limit.ts';
import type { Call, CallVariables } from './call.ts';
import type { OperationPlan, Planner } from './planner.ts';

export interface PlansExecutorParts {
  /** The served schema. */
  readonly schema: GraphQLSchema;
  readonly planner: Pick<Planner, 'callWith'>;
  /** @throws GraphQLError for a name that selects none of the operations */
  readonly find: (document: DocumentNode, operationName: unknown) => PlannedOperation;
  readonly memory: RequestMemory;
  /** @param call whose answer the error is part of; undefined: of none */
  readonly mask: (error: unknown, call: Call | undefined) => Error;
}

interface PlannedOperation {
  readonly operation: OperationDefinitionNode;
  readonly isIncremental: boolean;
  readonly document: DocumentNode;
  readonly plan: OperationPlan;
  errors(): readonly GraphQLError[];
  use(memory: RequestMemory): boolean;
  release(): void;
}

/** The answer to a delegation. */
interface Delegated {
  readonly answer: WholeAnswer;
  /** Undefined if the operation was refused before it was called. */
  readonly call: Call | undefined;
  readonly operation: PlannedOperation | undefined;
}

export interface PlansExecutor {
  /**
   * Executes any operation of the served schema on behalf of the caller whose context it carries, with the budgets of
   * that caller's operation. Without such a context it is refused. `@defer` and `@stream` are answered in parts.
   */
  readonly executor: Executor;
  /** Answers in one piece. */
  readonly delegate: (request: ExecutionRequest) => Promise<Delegated>;
}

/** Makes the plans an executor of graphql-tools. */
export function createPlansExecutor(parts: PlansExecutorParts): PlansExecutor {
  const { schema, planner, find, memory, mask: maskFor } = parts;

  const executor = async (request: ExecutionRequest) => {
    const answered = await execute(request, true);
    const { payloads, mask } = answered;
    if (payloads) return resultsOf(payloads, mask);
    return createResult(masked(answered.answer, mask));
  };
  return {
    executor: executor as Executor,
    delegate: (request) => execute(request, false),
  };

  async function execute(
    { document, variables = {}, operationName, context }: ExecutionRequest,
    inParts: boolean,
  ): Promise<Delegated & { readonly mask: Mask; readonly payloads?: Payloads }> {
    const whole = planner.callWith(context as object | undefined);
    const mask: Mask = (error) => maskFor(error, whole);
    const refused = (errors: readonly unknown[]) => ({
      answer: refusal(errors),
      call: undefined,
      operation: undefined,
      mask,
    });
    if (!whole) return refused([withoutCaller()]);
    let operation: PlannedOperation;
    try {
      operation = find(document, operationName);
      checkScope(whole, operation);
    } catch (error) {
      return refused([error]);
    }
    try {
      if (!operation.use(memory)) return refused([memory.refusal()]);
      const invalid = operation.errors();
      if (invalid.length > 0) return refused(invalid);
      const { variableDefinitions = [] } = operation.operation;
      const { errors, coerced } = getVariableValues(schema, variableDefinitions, variables);
      if (!coerced) return refused(errors);
      const call = whole.delegate(new DelegatedVariables(coerced, variables));
      const payloads = inParts && operation.isIncremental ? operation.plan.stream(call) : undefined;
      const answer = payloads ? NOTHING : await operation.plan.answer(call);
      return { answer, call, operation, mask, ...(payloads && { payloads }) };
    } catch (error) {
      return refused([error]);
    } finally {
      operation.release();
    }
  }
}

type Payloads = AsyncGenerator<Payload, void, undefined>;

const NOTHING: WholeAnswer = { data: undefined, errors: [], extensions: undefined };

/** Masks errors here, because nothing behind this executor does. */
function masked<T extends { readonly errors: readonly AnswerError[] }>(answer: T, mask: Mask): T {
  const errors = answer.errors.map((error) =>
    isOfService(error) ? error : { ...error, thrown: mask(error.thrown) },
  );
  return { ...answer, errors };
}

async function* resultsOf(payloads: Payloads, mask: Mask) {
  for await (const payload of payloads) {
    const { first, incremental } = payload;
    const shown = {
      ...payload,
      first: first && masked(first, mask),
      ...(incremental && { incremental: incremental.map((part) => masked(part, mask)) }),
    };
    const result = createPayload(shown, '20220824');
    if (result) yield result;
  }
}

function refusal(errors: readonly unknown[]): WholeAnswer {
  return { ...NOTHING, errors: errors.map((thrown) => ({ thrown, path: undefined })) };
}

/** As for an operation of the caller itself: a resolver must not do for a caller what the caller may not do. */
function checkScope({ origin: { caller } }: Call, { operation }: PlannedOperation): void {
  const needed = operation.operation === OperationTypeNode.MUTATION ? 'write' : 'read';
  if (!caller || caller.scopes.has(needed)) return;
  throw forbidden(
    `This field needs the scope "${needed}", which this credential does not have. The operator of this gateway can grant it.`,
  );
}

function withoutCaller() {
  return codedError(
    'UNAUTHENTICATED',
    'This operation has no caller. Pass the context of the request, which resolvers get as their third argument, to delegateToSchema or the executor.',
  );
}

class DelegatedVariables implements CallVariables {
  readonly values: CallVariables['values'];
  readonly #uncoerced: Readonly<Record<string, unknown>>;

  /** @param values coerced */
  constructor(values: CallVariables['values'], uncoerced: Readonly<Record<string, unknown>>) {
    this.values = values;
    this.#uncoerced = uncoerced;
  }

  text(name: string): string | undefined {
    return Object.hasOwn(this.#uncoerced, name) ? JSON.stringify(this.#uncoerced[name]) : undefined;
  }

  uncoerced(name: string): unknown {
    const text = this.text(name);
    if (text === undefined || !losesWriting(text)) return this.#uncoerced[name];
    const json = parseJson(text);
    return json instanceof Json ? json.value : this.#uncoerced[name];
  }
}

/** Executes an operation, in parts if it has `@defer` or `@stream`. What fails is a result with errors. */
type InProcessExecutor = (
  request: ExecutionRequest,
) => Promise<ExecutionResult | AsyncIterable<ExecutionResult>>;

/**
 * Also executes operations without a caller: those of the program around the gateway. They need no scope, and each has
 * a separate context. Together they have the budget of one caller.
 */
export function inProcess(
  { executor }: Pick<PlansExecutor, 'executor'>,
  planner: Pick<Planner, 'createCall' | 'admit' | 'callWith'>,
): InProcessExecutor {
  return async (request) => {
    const outer = request.context as object | undefined;
    if (outer && planner.callWith(outer)) return await executor(request);
    const context = { ...outer };
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

/** The plans executor gets those of the operation, and coerces them. */
const NO_VARIABLES: CallVariables = {
  values: {},
  text: () => undefined,
  uncoerced: () => undefined,
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
