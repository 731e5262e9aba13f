import { createDefaultExecutor, type SubschemaConfig } from '@graphql-tools/delegate';
import { createGraphQLError, type ExecutionRequest, type Executor } from '@graphql-tools/utils';
import {
  getOperationAST,
  GraphQLError,
  Kind,
  type ExecutionResult,
  type FieldNode,
  type GraphQLSchema,
} from 'graphql';
import { resultOf, type AnswerError, type Path } from '../engine/answer.ts';
import { keyOf } from '../engine/syntax.ts';
import { codedError, errorsThrown } from '../errors.ts';
import type { Delegate } from './delegate.ts';
import { executionWith, valuesIn } from './execution.ts';
import { fitting } from './fitting.ts';

/** Makes the executor of the served schema for stitching. @param delegate answers an operation by its plan */
export function servedExecutor(schema: GraphQLSchema, delegate: Delegate): Executor {
  return (async (request: ExecutionRequest) => {
    try {
      const answer = await delegate(request);
      // A copy for this delegation: graphql-tools writes into it.
      const { data } = await resultOf({ data: answer.data, errors: [] });
      return placed(schema, request, data, answer.errors);
    } catch (thrown) {
      return failed(request, [{ thrown, path: undefined }]);
    }
  }) as Executor;
}

/** Gives the results of another service the same form. graphql-js reports what its executor throws. */
export function ofOtherService(config: SubschemaConfig): SubschemaConfig {
  const { schema, executor = createDefaultExecutor(schema) } = config;
  const placing = async (request: ExecutionRequest) => {
    const result = (await executor(request)) as ExecutionResult;
    const errors = (result.errors ?? []).map(
      (error: GraphQLError | Pick<GraphQLError, 'message' | 'path'>) => ({
        thrown: error instanceof GraphQLError ? error : createGraphQLError(error.message, error),
        path: error.path,
      }),
    );
    return placed(schema, request, result.data, errors);
  };
  return { ...config, executor: placing as Executor };
}

/**
 * Puts errors where they belong in `data`, without paths, which graphql-js gives them: graphql-tools would report an
 * error without a path at one field only, and one of a batch at the place of another record.
 *
 * @throws OPERATION_TOO_COMPLEX
 */
function placed(
  schema: GraphQLSchema,
  request: ExecutionRequest,
  data: Container | null | undefined,
  errors: readonly AnswerError[],
): ExecutionResult {
  if (!data) return failed(request, errors);
  const execution = executionWith(request.context);
  execution?.count(valuesIn(data));
  for (const error of errors) {
    const path = pathOf(error) ?? [];
    let parent = data;
    let depth = 0;
    for (let next = parent[path[0]!]; isContainer(next); next = parent[path[depth]!]) {
      parent = next;
      depth += 1;
    }
    const key = path[depth] ?? '';
    const there = parent[key];
    if (there !== null && !(there instanceof Error)) {
      execution?.report(error);
      continue;
    }
    const earlier = there ? errorsThrown(there) : [];
    parent[key] = together([...earlier, new DelegatedError(error, path.slice(depth + 1))]);
  }
  const { operation } = getOperationAST(request.document)!;
  const root = schema.getRootType(operation)!;
  for (const field of rootFields(request)) {
    const name = field.name.value;
    const { type } = root.getFields()[name] ?? {};
    const key = keyOf(field);
    if (type) data[key] = fitting(data[key], type, `${root.name}.${name}`);
  }
  return { data };
}

/** The result of an operation that was refused, or has failed as a whole. */
function failed(request: ExecutionRequest, errors: readonly AnswerError[]): ExecutionResult {
  const located = errors.map((error) => new DelegatedError(error, pathOf(error)?.slice(1) ?? []));
  const error =
    located.length > 0 ? together(located) : codedError('UPSTREAM_BAD_RESPONSE', NOTHING);
  const keys = rootFields(request).map(keyOf);
  return { data: Object.fromEntries(keys.map((key) => [key, error])) };
}

const NOTHING =
  'A service returned neither data nor an error. Try again; the operator can read the log of the service.';

function rootFields({ document }: ExecutionRequest): readonly FieldNode[] {
  const { selections } = getOperationAST(document)!.selectionSet;
  return selections.filter((selection) => selection.kind === Kind.FIELD);
}

/** graphql-js takes one error for each value. */
function together(errors: readonly unknown[]): unknown {
  return errors.length === 1 ? errors[0] : new AggregateError(errors);
}

/** An error of a delegated operation, without a path. */
export class DelegatedError extends GraphQLError {
  readonly error: AnswerError;
  /** Leads from the value that is null to the one that failed. */
  readonly rest: Path;

  constructor(error: AnswerError, rest: Path) {
    super('service' in error ? error.service.message : String(error.thrown));
    this.error = error;
    this.rest = rest;
  }
}

function pathOf(error: AnswerError): Path | undefined {
  const isLocated = 'thrown' in error && error.thrown instanceof GraphQLError;
  return error.path ?? (isLocated ? error.thrown.path : undefined);
}

type Container = Record<string | number, unknown>;

/** Not an error that was put there. */
function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null && !(value instanceof Error);
}
