import type { DocumentNode, ExecutionResult, GraphQLError } from 'graphql';
import type { Increment, StreamPayload } from './payload.ts';
import type { StreamedLists } from './streamed-lists.ts';

/** Executes a document of which we stream nothing, for one part of the answer. */
export type Execute = (
  document: DocumentNode,
  context: { readonly streams: StreamedLists; readonly surplusErrors: GraphQLError[] },
) => Promise<ExecutionResult | AsyncIterable<StreamPayload>>;

export interface ExecutedPart {
  readonly result: ExecutionResult;
  /** What the executor put off, if it did. */
  readonly further: AsyncGenerator<readonly Increment[], void, undefined> | undefined;
}

/** Puts the surplus errors among the errors of what is given with or after them. */
export async function executePart(
  execute: Execute,
  document: DocumentNode,
  streams: StreamedLists,
): Promise<ExecutedPart> {
  const surplusErrors: GraphQLError[] = [];
  const answer = await execute(document, { streams, surplusErrors });
  if (!(Symbol.asyncIterator in answer)) {
    return { result: withErrors(answer, surplusErrors), further: undefined };
  }
  const payloads = answer[Symbol.asyncIterator]();
  const { done, value } = await payloads.next();
  if (done) return { result: {}, further: undefined };
  const { hasNext, incremental: _, ...result } = value;
  return {
    result: withErrors(result, surplusErrors),
    further: hasNext ? furtherOf(payloads, surplusErrors) : undefined,
  };
}

async function* furtherOf(
  payloads: AsyncIterator<StreamPayload>,
  surplusErrors: GraphQLError[],
): NonNullable<ExecutedPart['further']> {
  try {
    for (;;) {
      const { done, value } = await payloads.next();
      if (done) return;
      const [first, ...others] = value.incremental ?? [];
      if (first) yield [withErrors(first, surplusErrors), ...others];
    }
  } finally {
    await payloads.return?.();
  }
}

function withErrors<P extends { readonly errors?: readonly GraphQLError[] | undefined }>(
  part: P,
  surplus: GraphQLError[],
): P {
  const errors = [...(part.errors ?? []), ...surplus.splice(0)];
  return errors.length > 0 ? { ...part, errors } : part;
}
