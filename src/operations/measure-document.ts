import {
  Kind,
  type DocumentNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import { fieldsByKey, fragmentsOf, selectionsOf, type Fragments } from '../selections.ts';

/** The size of an operation. The contents of a fragment count wherever it is spread. */
export interface OperationSize {
  /** Fields, inline fragments and fragment spreads. */
  readonly selections: number;
  readonly rootFields: number;
  readonly aliases: number;
  readonly directives: number;
  readonly depth: number;
  /** The depth of `__schema` and `__type`, which does not count in `depth`. */
  readonly introspectionDepth: number;
}

export interface DocumentSize {
  readonly operations: ReadonlyMap<OperationDefinitionNode, OperationSize>;
  readonly fragments: Fragments;
  /** Whether fragments contain themselves, share a name or are not spread. Such fragments were not measured. */
  readonly hasBrokenFragments: boolean;
}

/**
 * Measures a document. Each fragment is measured once, however often it is spread, so ten fragments that each spread
 * the next one twice are measured quickly although they are a thousand times as large.
 */
export function measureDocument(document: DocumentNode): DocumentSize {
  const { definitions } = document;
  const fragments = fragmentsOf(document);
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
    // Not counted: routers send several `_entities` fields, and the number of representations is limited instead.
    const counts = selection.name.value === '_entities' ? 0 : 1;
    const isIntrospection = ['__schema', '__type'].includes(selection.name.value);
    return {
      ...plus(inside, { ...own, aliases: selection.alias ? counts : 0 }),
      rootFields: counts,
      depth: isIntrospection ? 1 : inside.depth + 1,
      introspectionDepth: isIntrospection ? inside.depth + 1 : inside.introspectionDepth,
    };
  };

  const written = definitions.filter((each) => each.kind === Kind.OPERATION_DEFINITION);
  const operations = new Map(
    written.map((operation) => [
      operation,
      plus(ofSelections(operation.selectionSet), { directives: directivesOf(operation) }),
    ]),
  );
  const fragmentCount = definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION).length;
  return {
    operations,
    fragments,
    hasBrokenFragments:
      hasCircle || fragmentCount > fragments.size || measured.size < fragments.size,
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

/** Adds selections of the same level: counts are added, and the greater depth is kept. */
function add(total: Size, more: Size): void {
  total.selections += more.selections;
  total.rootFields += more.rootFields;
  total.aliases += more.aliases;
  total.directives += more.directives;
  total.depth = Math.max(total.depth, more.depth);
  total.introspectionDepth = Math.max(total.introspectionDepth, more.introspectionDepth);
}

export interface RepeatedField {
  /** Its key in the answer. */
  readonly name: string;
  readonly times: number;
}

/**
 * Finds the field that an operation selects most often at one place of the answer. Validation compares all these
 * selections with each other, and everything below them.
 *
 * The operation must have been measured before, since the time that this takes grows with its selections.
 */
export function mostRepeatedField(
  { selectionSet }: OperationDefinitionNode,
  fragments: Fragments,
): RepeatedField {
  let most: RepeatedField = { name: '', times: 0 };
  const places = [selectionSet.selections];
  for (let place = places.pop(); place; place = places.pop()) {
    for (const [name, nodes] of fieldsByKey(place, fragments)) {
      if (nodes.length > most.times) most = { name, times: nodes.length };
      const below = selectionsOf(nodes);
      if (below.length > 0) places.push(below);
    }
  }
  return most;
}
