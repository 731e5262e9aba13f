import { Kind, type OperationDefinitionNode, type SelectionSetNode } from 'graphql';
import type { Fragments } from './measure-document.ts';

export interface RepeatedField {
  /** As the answer has it. */
  readonly name: string;
  readonly times: number;
}

/**
 * Which field an operation asks for most often at one place of the answer. The validation compares each of them
 * with each other, and with whatever is below.
 *
 * The operation must be measured before: what this costs grows with its selections.
 */
export function mostRepeatedField(
  { selectionSet }: OperationDefinitionNode,
  fragments: Fragments,
): RepeatedField {
  let most: RepeatedField = { name: '', times: 0 };
  const places: SelectionSetNode[][] = [[selectionSet]];
  for (let place = places.pop(); place; place = places.pop()) {
    for (const [name, { times, below }] of fieldsAt(place, fragments)) {
      if (times > most.times) most = { name, times };
      if (below.length > 0) places.push(below);
    }
  }
  return most;
}

interface Field {
  times: number;
  readonly below: SelectionSetNode[];
}

function fieldsAt(place: readonly SelectionSetNode[], fragments: Fragments): Map<string, Field> {
  const fields = new Map<string, Field>();
  const spread = new Set<string>();
  const sets = [...place];
  for (let set = sets.pop(); set; set = sets.pop()) {
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) {
        const name = (selection.alias ?? selection.name).value;
        const field = fields.get(name) ?? { times: 0, below: [] };
        fields.set(name, field);
        field.times += 1;
        if (selection.selectionSet) field.below.push(selection.selectionSet);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        sets.push(selection.selectionSet);
      } else if (!spread.has(selection.name.value)) {
        spread.add(selection.name.value);
        const fragment = fragments.get(selection.name.value);
        if (fragment) sets.push(fragment.selectionSet);
      }
    }
  }
  return fields;
}
