import {
  getVariableValues,
  Kind,
  visit,
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { CallVariables } from '../engine/call.ts';
import { badRequest, codedError } from '../errors.ts';
import { tooComplex } from './limits.ts';

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
    `The integer ${shortened(source)} has more digits than JSON numbers keep. Send it as a string.`,
  );
}

function shortened(digits: string): string {
  return digits.length > 30 ? `${digits.slice(0, 30)}…` : digits;
}

/** An operation of a document that is valid. */
interface Operation {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
}

/** The variables of a call, and how long they are as JSON. */
interface MeasuredVariables extends CallVariables {
  readonly length: number;
}

/**
 * Returns the variables that an operation declares, and nothing else of its request: a request may contain others of any
 * size, and a walk that several callers share outlives the request that began it.
 *
 * @throws AggregateError of one error for each wrong value; BAD_USER_INPUT for a condition that is null;
 * OPERATION_TOO_COMPLEX for values that are nested too deeply
 */
export function coerceVariables(
  operation: Operation,
  sent: Readonly<Record<string, unknown>>,
  options: Options,
): MeasuredVariables {
  try {
    const { values, sent: kept } = coerced(operation, sent, options);
    return { values, sent: kept, length: JSON.stringify(kept).length };
  } catch (error) {
    // Coercion and `JSON.stringify` recurse into each level of a value, until the call stack overflows.
    if (!(error instanceof RangeError)) throw error;
    throw tooComplex(
      'The variables are nested too deeply to be read. Send values with fewer levels.',
    );
  }
}

interface Options {
  readonly schema: GraphQLSchema;
  readonly hideSuggestions?: boolean;
}

function coerced(
  { document, operation }: Operation,
  sent: Readonly<Record<string, unknown>>,
  { schema, hideSuggestions = false }: Options,
): CallVariables {
  const { variableDefinitions = [] } = operation;
  if (variableDefinitions.length === 0) return NONE;
  const options = { maxErrors: 50, hideSuggestions };
  const { errors, coerced: values } = getVariableValues(schema, variableDefinitions, sent, options);
  if (!values) throw new AggregateError(errors);
  const names = variableDefinitions.map(({ variable }) => variable.name.value);
  const nulls = names.filter((name) => values[name] === null);
  if (nulls.length > 0) refuseConditions(document, new Set(nulls));
  return { values, sent: onlyOf(sent, names) };
}

const NONE: CallVariables = { values: {}, sent: {} };

/**
 * Refuses conditions that are null: the default value of a nullable variable makes the operation valid, but the caller
 * sent null.
 */
function refuseConditions(document: DocumentNode, nulls: ReadonlySet<string>): void {
  visit(document, {
    Directive: ({ name: { value: directive }, arguments: args = [] }) => {
      if (!['skip', 'include', 'stream'].includes(directive)) return;
      const condition = args.find(({ name }) => name.value === 'if')?.value;
      if (condition?.kind !== Kind.VARIABLE || !nulls.has(condition.name.value)) return;
      throw codedError(
        'BAD_USER_INPUT',
        `The variable $${condition.name.value} is the condition of @${directive}, and must not be null. Send true or false, or omit it.`,
      );
    },
  });
}

/** Returns `sent` itself if it has only declared values, as in most requests. */
function onlyOf(
  sent: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  const known = names.filter((name) => Object.hasOwn(sent, name));
  if (known.length === Object.keys(sent).length) return sent;
  return Object.fromEntries(known.map((name) => [name, sent[name]]));
}
