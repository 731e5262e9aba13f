import { pathOf, type AnswerError, type FieldValue, type Path } from './answer.ts';
import type { Requester } from './call.ts';
import type { Fill } from './mend.ts';

/** Answers the derived field of a nested list for one parent. */
export interface NestedFiller {
  /** The paths of its errors begin at the field. */
  answerBelow(requester: Requester, parentId: unknown): Promise<FieldValue>;
}

/** The nested lists that are begun at the same time. More would wait for each other anyway. */
const AT_A_TIME = 200;

/**
 * Fills nested lists in, those of several parents at the same time, so that they share requests.
 *
 * @returns the errors in them, with paths from where the mending began
 */
export async function fillNested(
  requester: Requester,
  fills: readonly Fill<NestedFiller>[],
): Promise<readonly { readonly error: AnswerError; readonly path: Path }[]> {
  const errors: { readonly error: AnswerError; readonly path: Path }[] = [];
  for (let from = 0; from < fills.length; from += AT_A_TIME) {
    const some = fills.slice(from, from + AT_A_TIME);
    const values = await Promise.all(
      some.map(({ filler, parentId }) => filler.answerBelow(requester, parentId)),
    );
    for (const [at, { value, errors: inside }] of values.entries()) {
      const { holder, key, path } = some[at]!;
      holder[key] = value && (await value.parse());
      for (const error of inside) errors.push({ error, path: [...path, ...pathOf(error)] });
    }
  }
  return errors;
}
