import { getVariableValues, type GraphQLSchema, type OperationDefinitionNode } from 'graphql';
import type { CallVariables } from '../engine/call.ts';
import { parseExactly } from '../engine/json.ts';
import { badRequest } from '../errors.ts';

/**
 * Parses what a caller sent as JSON.
 *
 * @throws SyntaxError; BAD_USER_INPUT for an integer that JavaScript cannot hold
 */
export function parseSent(text: string): unknown {
  return parseExactly(text, (digits) => {
    throw badRequest(
      `The integer ${digits} has more digits than JSON numbers keep. Send it as a string.`,
    );
  });
}

/**
 * Returns the variables that an operation declares, and nothing else of its request: a request may contain others of any
 * size, and a walk that several callers share outlives the request that began it.
 *
 * @param operation one that is valid
 * @throws AggregateError of one error for each wrong value
 */
export function coerceVariables(
  { variableDefinitions = [] }: OperationDefinitionNode,
  sent: Readonly<Record<string, unknown>>,
  {
    schema,
    hideSuggestions = false,
  }: { readonly schema: GraphQLSchema; readonly hideSuggestions?: boolean },
): CallVariables {
  if (variableDefinitions.length === 0) return NONE;
  const options = { maxErrors: 50, hideSuggestions };
  const { errors, coerced: values } = getVariableValues(schema, variableDefinitions, sent, options);
  if (!values) throw new AggregateError(errors);
  const names = variableDefinitions.map(({ variable }) => variable.name.value);
  const kept = names.filter((name) => Object.hasOwn(sent, name)).map((name) => [name, sent[name]]);
  return { values, sent: Object.fromEntries(kept) as Record<string, unknown> };
}

const NONE: CallVariables = { values: {}, sent: {} };
