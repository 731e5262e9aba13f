import {
  Kind,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type FragmentSpreadNode,
  type InlineFragmentNode,
  type SelectionNode,
} from 'graphql';

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

export function fragmentsOf({ definitions }: DocumentNode): Fragments {
  return new Map(
    definitions.flatMap((definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [],
    ),
  );
}

/** Returns what fields of one key select together. */
export function selectionsOf(nodes: readonly FieldNode[]): readonly SelectionNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []);
}

/** Groups the fields that selections have for one object by their keys in the answer, whatever their conditions are. */
export function fieldsByKey(
  selections: readonly SelectionNode[],
  fragments: Fragments,
): ReadonlyMap<string, readonly FieldNode[]> {
  return Map.groupBy(fieldsIn(selections, fragments), ({ alias, name }) => (alias ?? name).value);
}

/** Yields the fields that selections have for one object, whatever their conditions are. */
export function* fieldsIn(
  selections: readonly SelectionNode[],
  fragments: Fragments,
): Generator<FieldNode, void, undefined> {
  for (const [node] of walkFields(selections, true, { fragments, enter: () => true })) yield node;
}

export interface FieldWalk<State> {
  readonly fragments: Fragments;
  /** Returns the state inside a fragment; undefined to leave the fragment out. */
  readonly enter: (
    selection: FragmentSpreadNode | InlineFragmentNode,
    fragment: FragmentDefinitionNode | InlineFragmentNode,
    state: State,
  ) => State | undefined;
  /** A fragment is entered once for each key of a state. Default: the state itself. */
  readonly keyOf?: (state: State) => unknown;
  /** What was entered before. A recursion into the fields passes it on, to enter each fragment once in all. */
  readonly entered?: Map<string, Set<unknown>>;
}

/**
 * Yields the fields that selections have for one object, in order, with the state at each: fields in fragments too, but
 * not those below fields. However often a fragment is spread, it is entered once for each key, so that the time is
 * bounded by the length of the document.
 */
export function* walkFields<State>(
  selections: readonly SelectionNode[],
  state: State,
  walk: FieldWalk<State>,
): Generator<readonly [FieldNode, State], void, undefined> {
  const {
    fragments,
    enter,
    keyOf = (key) => key,
    entered = new Map<string, Set<unknown>>(),
  } = walk;
  for (const selection of selections) {
    if (selection.kind === Kind.FIELD) {
      yield [selection, state];
      continue;
    }
    const isInline = selection.kind === Kind.INLINE_FRAGMENT;
    const fragment = isInline ? selection : fragments.get(selection.name.value);
    if (!fragment) continue;
    const inner = enter(selection, fragment, state);
    if (inner === undefined) continue;
    if (!isInline) {
      const keys = entered.get(selection.name.value) ?? new Set();
      entered.set(selection.name.value, keys);
      const key = keyOf(inner);
      if (keys.has(key)) continue;
      keys.add(key);
    }
    yield* walkFields(fragment.selectionSet.selections, inner, { ...walk, entered });
  }
}
