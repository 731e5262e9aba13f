import {
  execute,
  parse,
  validate,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLSchema,
} from 'graphql';
import { printExactly } from './exact-json.ts';

/** Answers one request with the text of a body. */
export type Service = (operation: ReceivedOperation) => string | Promise<string>;

/** One request, as it was received. */
export interface ReceivedOperation {
  readonly query: string;
  readonly variables?: Record<string, unknown> | null;
  readonly operationName?: string | null;
}

export interface ServiceOptions extends Pick<
  ExecutionArgs,
  'rootValue' | 'fieldResolver' | 'typeResolver'
> {
  readonly schema: GraphQLSchema;
  /** Adds to the answer what graphql-js cannot return: `extensions`, other members of an error. */
  readonly amend?: (result: object, operation: ReceivedOperation) => object;
}

/** A service that answers with graphql-js, as its documentation shows, and writes numbers digit for digit. */
export function serviceOf({ schema, amend = (result) => result, ...how }: ServiceOptions): Service {
  return async (operation) => {
    const answer = await answerTo(operation, schema, how);
    return printExactly(amend({ ...answer }, operation));
  };
}

async function answerTo(
  { query, variables, operationName }: ReceivedOperation,
  schema: GraphQLSchema,
  how: Omit<ServiceOptions, 'schema' | 'amend'>,
): Promise<ExecutionResult> {
  let document: DocumentNode;
  try {
    document = parse(query);
  } catch (error) {
    return { errors: [error as never] };
  }
  const errors = validate(schema, document);
  if (errors.length > 0) return { errors };
  const variableValues = variables ?? {};
  return execute({ ...how, schema, document, variableValues, operationName });
}
