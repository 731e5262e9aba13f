import { getVariableValues, type GraphQLSchema, type OperationDefinitionNode } from 'graphql';
import type { CallVariables } from '../engine/call.ts';
import { badRequest } from '../errors.ts';

/** An integer of 16 digits or more. Also found in strings, where it only costs time. */
const LONG_NUMBER = /[:[,]\s*-?\d{16}/;

/**
 * Parses what a caller sent as JSON.
 *
 * @throws SyntaxError; BAD_USER_INPUT for an integer that JavaScript cannot hold
 */
export function parseSent(text: string): unknown {
  return LONG_NUMBER.test(text) ? JSON.parse(text, refuseLong) : JSON.parse(text);
}

function refuseLong(_: string, value: unknown, context?: { readonly source?: string }): unknown {
  const isLong =
    typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
  const source = context?.source;
  if (!isLong || source === undefined || !/^-?\d+$/.test(source)) return value;
  throw badRequest(
    `The integer ${source} has more digits than JSON numbers keep. Send it as a string.`,
  );
}

/** The variables of a call, and how long they are as JSON. */
interface MeasuredVariables extends CallVariables {
  readonly length: number;
}

/**
 * Returns the variables that an operation declares, and nothing else of its request: a request may contain others of any
 * size, and a walk that several callers share outlives the request that began it.
 *
 * @param operation one that is valid
 * @throws AggregateError of one error for each wrong value
 */
export function coerceVariables(
  operation: OperationDefinitionNode,
  sent: Readonly<Record<string, unknown>>,
  options: Options,
): MeasuredVariables {
  const { values, sent: kept } = coerced(operation, sent, options);
  return { values, sent: kept, length: JSON.stringify(kept).length };
}

interface Options {
  readonly schema: GraphQLSchema;
  readonly hideSuggestions?: boolean;
}

function coerced(
  operation: OperationDefinitionNode,
  sent: Readonly<Record<string, unknown>>,
  { schema, hideSuggestions = false }: Options,
): CallVariables {
  const { variableDefinitions = [] } = operation;
  if (variableDefinitions.length === 0) return NONE;
  const options = { maxErrors: 50, hideSuggestions };
  const { errors, coerced: values } = getVariableValues(schema, variableDefinitions, sent, options);
  if (!values) throw new AggregateError(errors);
  const names = variableDefinitions.map(({ variable }) => variable.name.value);
  const kept = names.filter((name) => Object.hasOwn(sent, name)).map((name) => [name, sent[name]]);
  return { values, sent: Object.fromEntries(kept) as Record<string, unknown> };
}

const NONE: CallVariables = { values: {}, sent: {} };
