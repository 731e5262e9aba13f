import { valueFromASTUntyped, type FieldNode, type SelectionNode } from 'graphql';
import type { AnswerError } from '../../answers/answer-errors.ts';
import { isOwnCursor } from '../../paging/cursor.ts';
import { fieldsByKey, selectionsOf, type Fragments } from '../../selections.ts';

/** Where cursors are looked for: the selections of the root that are forwarded, and the values of the variables. */
export interface CursorPlaces {
  readonly selections: readonly SelectionNode[];
  readonly fragments: Fragments;
  readonly variables: Readonly<Record<string, unknown>>;
}

/**
 * Adds a hint to errors of the service about lists with a cursor of the gateway among their arguments: the service cannot know
 * what it is, and a caller may take the cursors of a connection and of the plain list for the same.
 */
export function withCursorHints(
  errors: readonly AnswerError[],
  places: CursorPlaces,
): readonly AnswerError[] {
  const hints = new Map<string, string>();
  return errors.map((error) => {
    if ('thrown' in error || !error.path) return error;
    const keys = error.path.filter((step) => typeof step === 'string');
    const place = keys.join('.');
    const hint = hints.get(place) ?? hintFor(places, keys);
    hints.set(place, hint);
    return hint === '' ? error : { ...error, message: `${error.message} ${hint}` };
  });
}

function hintFor({ selections, fragments, variables }: CursorPlaces, keys: readonly string[]) {
  let nodes: readonly FieldNode[] = [];
  let below = selections;
  for (const key of keys) {
    nodes = fieldsByKey(below, fragments).get(key) ?? [];
    below = selectionsOf(nodes);
  }
  const after = nodes[0]?.arguments?.find(({ value }) => {
    const cursor: unknown = valueFromASTUntyped(value, { ...variables });
    return typeof cursor === 'string' && isOwnCursor(cursor);
  });
  if (!after) return '';
  const name = nodes[0]!.name.value;
  return `The gateway adds: this \`${after.name.value}\` is a cursor of a connection, which does not fit into ${name}. Pass an endCursor of ${name} itself, or use the connection.`;
}
