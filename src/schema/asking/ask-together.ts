import type { FieldNode } from 'graphql';
import type { AskingContext } from './asking-context.ts';
import { asking, type UpstreamResult } from './ask-upstream.ts';
import type { QuestionContext, UpstreamLink } from './upstream-link.ts';
import type { UpstreamError, UpstreamValue } from './upstream-value.ts';
import { writeRequest } from './write-request.ts';

/** What was answered to several root fields of one request. */
export interface AnsweredTogether {
  /** One for each; undefined when the request failed as a whole, so that none tells on its own. */
  readonly values: readonly UpstreamValue[] | undefined;
  /** The upstream did not even begin: a variable, or the request itself, does not suit it. */
  readonly isRefused: boolean;
}

/**
 * Asks several root fields in one request.
 *
 * @param fields each under an alias
 */
export async function askTogether(
  link: UpstreamLink,
  fields: readonly FieldNode[],
  question: QuestionContext,
  context: AskingContext,
): Promise<AnsweredTogether> {
  const ask = asking(link, question.operation, (rides) =>
    writeRequest(link, fields, question, rides),
  );
  const result = await ask(question.variables, context);
  const isWhole = result.data !== null && result.data !== undefined;
  const keys = fields.map(({ alias, name }) => (alias ?? name).value);
  return {
    values: isWhole || keys.length === 1 ? valuesOf(result, keys) : undefined,
    isRefused: result.data === undefined,
  };
}

/** What stands at none of the fields may be why any of them is null; else it is put beside the first. */
function valuesOf({ data, errors }: UpstreamResult, keys: readonly string[]) {
  const byKey = new Map<string, UpstreamError[]>(keys.map((key) => [key, []]));
  const elsewhere: UpstreamError[] = [];
  for (const error of errors) {
    const { message, path, extensions } = error;
    const at = byKey.get(String(path[0]));
    if (at) at.push({ ...error, path: path.slice(1) });
    else elsewhere.push({ path: [], message, extensions });
  }
  const values = keys.map((key) => ({ value: data?.[key] ?? null, errors: byKey.get(key)! }));
  const unexplained = values.filter(({ value, errors: own }) => value === null && own.length === 0);
  const [first] = values;
  for (const { errors: own } of unexplained.length > 0 ? unexplained : [first!]) {
    own.push(...elsewhere);
  }
  return values;
}
