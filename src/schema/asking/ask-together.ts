import type { ExecutionResult, FieldNode } from 'graphql';
import type { AskingContext } from './asking-context.ts';
import { asking } from './ask-upstream.ts';
import type { QuestionContext, UpstreamLink } from './upstream-link.ts';
import type { UpstreamError, UpstreamValue } from './upstream-value.ts';
import { writeRequest } from './write-request.ts';

/**
 * Asks several root fields in one request.
 *
 * @param fields each under an alias
 * @returns a value for each; undefined when the request failed as a whole, so that none tells on its own
 */
export async function askTogether(
  link: UpstreamLink,
  fields: readonly FieldNode[],
  question: QuestionContext,
  context: AskingContext,
): Promise<readonly UpstreamValue[] | undefined> {
  const ask = asking(link, question.operation, (rides) =>
    writeRequest(link, fields, question, rides),
  );
  const result = await ask(question.variables, context);
  const isWhole = result.data !== null && result.data !== undefined;
  if (!isWhole && fields.length > 1) return undefined;
  return valuesOf(
    result,
    fields.map(({ alias, name }) => (alias ?? name).value),
  );
}

/** What stands at none of the fields is put beside the first. */
function valuesOf({ data, errors = [] }: ExecutionResult, keys: readonly string[]) {
  const values = data;
  const byKey = new Map<string, UpstreamError[]>(keys.map((key) => [key, []]));
  for (const { message, path, extensions } of errors) {
    const at = byKey.get(String(path?.[0]));
    const place = { path: at ? path!.slice(1) : [], message, extensions: extensions ?? {} };
    (at ?? byKey.get(keys[0]!)!).push(place);
  }
  return keys.map((key) => ({ value: values?.[key] ?? null, errors: byKey.get(key)! }));
}
