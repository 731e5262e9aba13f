import { GraphQLError } from 'graphql';

interface Payload {
  readonly incremental?: readonly { readonly errors?: readonly unknown[] }[];
}

/** Yoga masks the errors of a payload, and not those of the parts inside it. */
export function maskedParts<P extends object>(payload: P, mask: (error: unknown) => Error): P {
  const { incremental } = payload as Payload;
  if (!incremental?.some(({ errors }) => errors)) return payload;
  const parts = incremental.map((part) =>
    part.errors ? { ...part, errors: part.errors.map((error) => plain(mask(error))) } : part,
  );
  return { ...payload, incremental: parts };
}

/** Without what is for the server only. */
function plain(error: Error): Error {
  if (!(error instanceof GraphQLError) || !('http' in error.extensions)) return error;
  const { http: _, ...extensions } = error.extensions;
  return new GraphQLError(error.message, {
    nodes: error.nodes ?? null,
    path: error.path ?? null,
    extensions,
  });
}
