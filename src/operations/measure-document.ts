import {
  Kind,
  type DocumentNode,
  type FragmentDefinitionNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';

/** How much an operation is. What a fragment holds counts wherever the fragment is spread. */
export interface OperationSize {
  /** Fields, fragments and their spreads. */
  readonly selections: number;
  readonly rootFields: number;
  readonly aliases: number;
  readonly directives: number;
  readonly depth: number;
  /** Of what is asked of `__schema` and `__type`, which is no part of `depth`. */
  readonly introspectionDepth: number;
}

export interface DocumentSize {
  readonly operations: ReadonlyMap<OperationDefinitionNode, OperationSize>;
  readonly fragments: Fragments;
  /** Fragments that contain themselves, share a name or are spread nowhere: nothing was measured of these. */
  readonly hasBrokenFragments: boolean;
}

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

/**
 * Measures each fragment once, however often and deeply it is spread: fragments that double each other ten times
 * are a thousand times as much, and take no longer.
 */
export function measureDocument({ definitions }: DocumentNode): DocumentSize {
  const written = definitions.filter((each) => each.kind === Kind.FRAGMENT_DEFINITION);
  const fragments = new Map(written.map((fragment) => [fragment.name.value, fragment]));
  const measured = new Map<string, Size>();
  const open = new Set<string>();
  let hasCircle = false;

  const ofFragment = (name: string): Size => {
    const known = measured.get(name);
    if (known) return known;
    const fragment = fragments.get(name);
    if (!fragment) return NOTHING;
    if (open.has(name)) {
      hasCircle = true;
      return NOTHING;
    }
    open.add(name);
    const inside = ofSelections(fragment.selectionSet);
    const size = plus(inside, { directives: fragment.directives?.length ?? 0 });
    open.delete(name);
    measured.set(name, size);
    return size;
  };

  const ofSelections = ({ selections }: SelectionSetNode): Size => {
    const total = { ...NOTHING };
    for (const selection of selections) add(total, ofSelection(selection));
    return total;
  };

  const ofSelection = (selection: SelectionNode): Size => {
    const own = { selections: 1, directives: selection.directives?.length ?? 0 };
    if (selection.kind === Kind.FRAGMENT_SPREAD) return plus(ofFragment(selection.name.value), own);
    const inside = selection.selectionSet ? ofSelections(selection.selectionSet) : NOTHING;
    if (selection.kind === Kind.INLINE_FRAGMENT) return plus(inside, own);
    // Its representations are a list already: another one of it is no more than they are, and routers send several.
    const counts = selection.name.value === '_entities' ? 0 : 1;
    const isIntrospection = ['__schema', '__type'].includes(selection.name.value);
    return {
      ...plus(inside, { ...own, aliases: selection.alias ? counts : 0 }),
      rootFields: counts,
      depth: isIntrospection ? 1 : inside.depth + 1,
      introspectionDepth: isIntrospection ? inside.depth + 1 : inside.introspectionDepth,
    };
  };

  const operations = new Map(
    definitions
      .filter((each) => each.kind === Kind.OPERATION_DEFINITION)
      .map((operation) => [
        operation,
        plus(ofSelections(operation.selectionSet), { directives: directivesOf(operation) }),
      ]),
  );
  return {
    operations,
    fragments,
    hasBrokenFragments:
      hasCircle || written.length > fragments.size || measured.size < fragments.size,
  };
}

type Size = { -readonly [part in keyof OperationSize]: number };

const NOTHING: Readonly<Size> = {
  selections: 0,
  rootFields: 0,
  aliases: 0,
  directives: 0,
  depth: 0,
  introspectionDepth: 0,
};

function directivesOf({ directives = [], variableDefinitions = [] }: OperationDefinitionNode) {
  return variableDefinitions.reduce(
    (count, variable) => count + (variable.directives?.length ?? 0),
    directives.length,
  );
}

function plus(size: Size, more: Partial<Size>): Size {
  const total = { ...size };
  add(total, { ...NOTHING, ...more });
  return total;
}

/** Beside each other, so of depths the greater one. */
function add(total: Size, more: Size): void {
  total.selections += more.selections;
  total.rootFields += more.rootFields;
  total.aliases += more.aliases;
  total.directives += more.directives;
  total.depth = Math.max(total.depth, more.depth);
  total.introspectionDepth = Math.max(total.introspectionDepth, more.introspectionDepth);
}
