import { resolveExternalValue, type SubschemaConfig } from '@graphql-tools/delegate';
import { GraphQLError, type GraphQLOutputType, type GraphQLResolveInfo } from 'graphql';
import type { Identified } from '../paging/page.ts';

/** One element of a page as it came, once for each place of the operation that selects of it. */
export interface UpstreamRecord extends Identified {
  readonly shapes: readonly RecordShape[];
}

/** What one place of the operation selected of a record. */
export interface RecordShape {
  readonly value: unknown;
  /** Errors inside it, with paths that begin at the record. */
  readonly errors: readonly RecordError[];
}

export interface RecordError {
  readonly path: readonly (string | number)[];
  readonly message: string;
  readonly extensions: Record<string, unknown>;
}

export type ResponsePath = readonly (string | number)[];

/**
 * Makes a record resolvable at `path` of the answer: its fields are found by the caller's aliases, and
 * the upstream's errors stand where the caller sees the record, not where the page had it.
 */
export function recordAt(
  { value, errors }: RecordShape,
  path: ResponsePath,
  type: GraphQLOutputType,
  subschema: SubschemaConfig,
  context: object,
  info: GraphQLResolveInfo,
): unknown {
  const placed = placeErrors(value, errors, path);
  return resolveExternalValue(placed, [], subschema, context as never, info, type, true);
}

/** Puts errors in place of the nulls that they caused; a null may have come up from deeper inside. */
function placeErrors(value: unknown, errors: readonly RecordError[], path: ResponsePath): unknown {
  const root = { value };
  for (const error of errors) {
    let holder: Record<string | number, unknown> = root;
    let key: string | number = 'value';
    for (const step of error.path) {
      const inner = holder[key];
      if (typeof inner !== 'object' || inner === null || inner instanceof Error) break;
      holder = inner as Record<string | number, unknown>;
      key = step;
    }
    const located = new GraphQLError(error.message, {
      path: [...path, ...error.path],
      extensions: error.extensions,
    });
    const there = holder[key];
    if (there instanceof AggregateError) there.errors.push(located);
    else if (there instanceof Error) holder[key] = new AggregateError([there, located]);
    else if (there === null || there === undefined) holder[key] = located;
  }
  return root.value;
}
