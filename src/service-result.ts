import type { ExecutionResult } from '@graphql-tools/utils';
import { GraphQLError } from 'graphql';

/**
 * The result of a request that has a reader. Its members are made from the answer when somebody asks for them: mostly
 * only the reading is used. To copy it, use `plain()`, because the members are not properties of its own.
 */
export class ServiceResult<T> implements ExecutionResult {
  /** What the reader of the request made of the answer. Equal requests share it: it must not be changed. */
  readonly reading: T;
  readonly #answer: Buffer | string;
  #members: PlainResult | undefined;

  /** @param answer JSON: an object with `data`, or a list of `errors`, or both */
  constructor(reading: T, answer: Buffer | string) {
    this.reading = reading;
    this.#answer = answer;
  }

  // The types of graphql-tools know members that are left out, but none that are undefined.
  get data(): Record<string, unknown> | null {
    return this.plain().data!;
  }

  get errors(): readonly GraphQLError[] {
    return this.plain().errors!;
  }

  get extensions(): Record<string, unknown> {
    return this.plain().extensions!;
  }

  plain(): PlainResult {
    return (this.#members ??= resultOf(this.#answer));
  }
}

type PlainResult = ExecutionResult<Record<string, unknown>, Record<string, unknown>>;

function resultOf(answer: Buffer | string): PlainResult {
  const { data, errors, extensions } = JSON.parse(String(answer)) as Pick<PlainResult, 'data'> &
    Readonly<Record<string, unknown>>;
  return {
    ...(data !== undefined && { data }),
    ...(Array.isArray(errors) &&
      errors.length > 0 && { errors: errors.slice(0, MAX_ERRORS).map(errorOf) }),
    ...(isObject(extensions) && { extensions }),
  };
}

/** Each has a stack trace. */
const MAX_ERRORS = 3_000;

function errorOf(error: unknown): GraphQLError {
  const { message, path, extensions, locations }: Record<string, unknown> = isObject(error)
    ? error
    : {};
  const made = new GraphQLError(
    typeof message === 'string' ? message : 'The recruiting service reported an error.',
    {
      ...(Array.isArray(path) && { path: path as (string | number)[] }),
      ...(isObject(extensions) && { extensions }),
    },
  );
  return Array.isArray(locations) ? Object.assign(made, { locations }) : made;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
