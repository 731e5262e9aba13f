import type { Json } from '../json.ts';
import { readErrors, startsWith, type UpstreamError } from './errors.ts';

/** An answer of the service, taken apart. */
export interface ServiceAnswer {
  readonly data: Json | undefined;
  readonly errors: readonly UpstreamError[];
  /** As it was written. */
  readonly extensions: string | undefined;
}

export function readAnswer(answer: Json): ServiceAnswer {
  const extensions = answer.get('extensions');
  return {
    data: answer.get('data'),
    errors: readErrors(answer.get('errors')?.values ?? []),
    extensions: extensions?.kind === 'object' ? extensions.raw : undefined,
  };
}

/** What stands at a path of an answer, and the errors in it. */
export interface Found {
  readonly value: Json | undefined;
  readonly errors: readonly UpstreamError[];
}

/** Errors that stand elsewhere belong to it all the same. */
export function descend({ value, errors }: Found, path: readonly string[]): Found {
  let inner = value;
  for (const step of path) inner = inner?.get(step);
  return {
    value: inner,
    errors: errors.map((error) => ({
      ...error,
      path: error.path && startsWith(error.path, path) ? error.path.slice(path.length) : [],
    })),
  };
}
