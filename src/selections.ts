import {
  getNamedType,
  getOperationAST,
  Kind,
  separateOperations,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type FragmentSpreadNode,
  type GraphQLCompositeType,
  type GraphQLError,
  type GraphQLNamedType,
  type GraphQLSchema,
  type InlineFragmentNode,
  type OperationDefinitionNode,
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

/** Returns the combined selections of the fields of one key. */
export function selectionsOf(nodes: readonly FieldNode[]): readonly SelectionNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []);
}

/** Groups the fields that selections have for one object by their keys in the answer, whatever their conditions. */
export function fieldsByKey(
  selections: readonly SelectionNode[],
  fragments: Fragments,
): ReadonlyMap<string, readonly FieldNode[]> {
  return Map.groupBy(fieldsIn(selections, fragments), ({ alias, name }) => (alias ?? name).value);
}

/** Returns the fields that selections have for one object, whatever their conditions. */
export function fieldsIn(
  selections: readonly SelectionNode[],
  fragments: Fragments,
): readonly FieldNode[] {
  const fields: FieldNode[] = [];
  const walk = { fragments, enter: () => true, field: (node: FieldNode) => void fields.push(node) };
  walkFields(selections, true, walk);
  return fields;
}

export interface FieldWalk<State> {
  readonly fragments: Fragments;
  /** Returns the state inside a fragment; undefined to skip the fragment. */
  readonly enter: (
    selection: FragmentSpreadNode | InlineFragmentNode,
    fragment: FragmentDefinitionNode | InlineFragmentNode,
    state: State,
  ) => State | undefined;
  /** Called for each field, in order. */
  readonly field: (node: FieldNode, state: State) => void;
  /** A fragment is entered once for each key of a state. Default: the state itself. */
  readonly keyOf?: (state: State) => unknown;
}

/**
 * Visits the fields that selections have for one object: also those in fragments, but not those below fields. A
 * fragment is entered once for each key, however often it is spread, so that the time is bounded by the length of the
 * document.
 *
 * @param entered keys, by the names of fragments: a recursion into the fields passes it on, so that each fragment is
 *   entered once in all
 */
export function walkFields<State>(
  selections: readonly SelectionNode[],
  state: State,
  walk: FieldWalk<State>,
  entered = new Map<string, Set<unknown>>(),
): void {
  const { fragments, enter, field, keyOf = (key) => key } = walk;
  for (const selection of selections) {
    if (selection.kind === Kind.FIELD) {
      field(selection, state);
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
    walkFields(fragment.selectionSet.selections, inner, walk, entered);
  }
}

/** Returns one operation of a document, with the fragments that it uses. */
export function onlyOperation(document: DocumentNode, { name }: OperationDefinitionNode) {
  const only = separateOperations(document)[name?.value ?? ''] ?? document;
  return { document: only, operation: getOperationAST(only, name?.value)! };
}

/**
 * Calls a function for each field of a document, with the type on which the field is selected, and the type that it
 * returns. Fields that are selected on an unknown type are skipped.
 */
export function visitFields(
  schema: GraphQLSchema,
  document: DocumentNode,
  enter: (
    node: FieldNode,
    parent: GraphQLCompositeType,
    type: GraphQLNamedType | undefined,
  ) => void,
): void {
  const types = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(types, {
      Field: (node) => {
        const parent = types.getParentType();
        if (parent) enter(node, parent, getNamedType(types.getType() ?? undefined));
      },
    }),
  );
}

/** A scope that a field of an operation needs. */
export interface Need {
  readonly scope: string;
  /** The field that needs it, for messages: `The field Person.contacts`. */
  readonly subject: string;
}

/** A field of an operation that needs scopes. */
export interface ScopedUse {
  readonly node: FieldNode;
  readonly needs: readonly Need[];
}

/** A field that the caller may not read: it is not sent, and is null with an error. */
export interface Refused {
  /** Its key in the answer. */
  readonly key: string;
  readonly name: string;
  readonly error: GraphQLError;
}

const REFUSED = Symbol('refused');

/**
 * Replaces a field that the caller may not read by a `__typename` under a key of the gateway, so that the request stays
 * valid wherever the field was selected. Its arguments and selections are dropped.
 *
 * @param sentKey different for fields that are read in different ways: callers who send the same share the answer
 */
export function refuseField(field: FieldNode, sentKey: string, error: GraphQLError): FieldNode {
  const { alias, name, directives = [] } = field;
  const refused: Refused = { key: (alias ?? name).value, name: name.value, error };
  const node: FieldNode = {
    kind: Kind.FIELD,
    alias: { kind: Kind.NAME, value: sentKey },
    name: { kind: Kind.NAME, value: '__typename' },
    directives: directives.filter(({ name: { value } }) => value === 'skip' || value === 'include'),
  };
  // Copies of the node keep it.
  return Object.assign(node, { [REFUSED]: refused });
}

export function refusalOf(node: FieldNode): Refused | undefined {
  return (node as { readonly [REFUSED]?: Refused })[REFUSED];
}
