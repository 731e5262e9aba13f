import {
  Kind,
  type FieldNode,
  type FragmentDefinitionNode,
  type FragmentSpreadNode,
  type InlineFragmentNode,
  type SelectionNode,
} from 'graphql';
import { OWN_KEYS } from '../../answers/answer-errors.ts';

/** Selections of the root, and the fragments that they may spread. */
export interface RootSelections {
  readonly selections: readonly SelectionNode[];
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
}

/** What is sent of such selections. */
export interface RootReduction {
  /** Returns what is sent in place of a field; nothing, to leave it out. */
  field(node: FieldNode): readonly SelectionNode[];
  /** Returns a fragment as it is sent, apart from its selections; undefined to leave it out with all of them. */
  fragment<F extends FragmentSpreadNode | InlineFragmentNode>(node: F): F | undefined;
}

/**
 * Reduces selections of the root, and the fragments that they spread, to the fields to be sent. A fragment in which
 * nothing is left is left out. One that changes gets a second definition under another name, since it may also be spread
 * below the root, where the service answers all of it.
 */
export function reduceRoot(
  { selections, fragments }: RootSelections,
  reduction: RootReduction,
): RootSelections {
  const defined = new Map(fragments);
  const names = new Map<string, string | undefined>();
  let parts = 0;
  return { selections: leftOf(selections), fragments: defined };

  function leftOf(some: readonly SelectionNode[]): readonly SelectionNode[] {
    return some.flatMap((selection): readonly SelectionNode[] => {
      if (selection.kind === Kind.FIELD) return reduction.field(selection);
      const sent = reduction.fragment(selection);
      if (!sent) return [];
      const left = sent.kind === Kind.INLINE_FRAGMENT ? reduced(sent) : renamed(sent);
      return left ? [left] : [];
    });
  }

  /** The fragment itself if it loses nothing; undefined if nothing is left. */
  function reduced<F extends FragmentDefinitionNode | InlineFragmentNode>(
    fragment: F,
  ): F | undefined {
    const all = fragment.selectionSet.selections;
    const left = leftOf(all);
    if (left.length === 0) return undefined;
    const isSame = left.length === all.length && left.every((one, i) => one === all[i]);
    if (isSame) return fragment;
    return { ...fragment, selectionSet: { kind: Kind.SELECTION_SET, selections: left } };
  }

  function renamed(spread: FragmentSpreadNode): FragmentSpreadNode | undefined {
    const { value } = spread.name;
    if (!names.has(value)) names.set(value, nameOfReduced(value));
    const name = names.get(value);
    if (name === undefined) return undefined;
    return name === value ? spread : { ...spread, name: { kind: Kind.NAME, value: name } };
  }

  function nameOfReduced(name: string): string | undefined {
    const fragment = fragments.get(name);
    const left = fragment && reduced(fragment);
    if (!left || left === fragment) return left && name;
    // Numbered: operations that differ only in the names of their fragments send the same.
    let value: string;
    do value = `${OWN_KEYS}Part${parts++}`;
    while (defined.has(value));
    defined.set(value, { ...left, name: { kind: Kind.NAME, value } });
    return value;
  }
}
