import {
  isAbstractType,
  isObjectType,
  Kind,
  type DirectiveNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';

/** What decides which selections of an operation count. */
export interface SelectionScope {
  /** As callers see it. */
  readonly schema: GraphQLSchema;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** Returns the value of a Boolean variable in `@skip`, `@include` or the `if` of `@defer`. */
  readonly isTrue: (variable: string) => boolean;
  /** Whether `@defer` has an effect. Default: false. */
  readonly defers?: boolean;
}

/** The field nodes of one key of the answer, which are merged (specification, 6.3.2). */
export interface CollectedField {
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  /** The `@defer` that it is under; undefined if any of its nodes is under none. */
  readonly deferred: DeferUse | undefined;
}

export interface DeferUse {
  readonly label: string | undefined;
}

/**
 * Collects the fields of an object of this type, in the order of the answer. Of an abstract type: those that are
 * selected whatever the object's type is.
 */
export function collectFields(
  scope: SelectionScope,
  type: GraphQLCompositeType,
  selections: readonly SelectionNode[],
): ReadonlyMap<string, CollectedField> {
  const fields = new Map<
    string,
    { key: string; nodes: FieldNode[]; deferred: DeferUse | undefined }
  >();
  // A fragment counts once, but a deferred one counts again where it is not deferred.
  const spread = new Set<string>();
  const spreadDeferred = new Set<string>();
  collect(selections, undefined);
  return fields;

  function collect(some: readonly SelectionNode[], deferred: DeferUse | undefined): void {
    for (const selection of some) {
      if (!isIncluded(scope, selection.directives)) continue;
      if (selection.kind === Kind.FIELD) {
        const key = (selection.alias ?? selection.name).value;
        const field = fields.get(key);
        if (!field) fields.set(key, { key, nodes: [selection], deferred });
        else {
          field.nodes.push(selection);
          field.deferred &&= deferred;
        }
        continue;
      }
      const inner = deferOf(scope, selection.directives) ?? deferred;
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        if (isApplicable(scope.schema, selection.typeCondition?.name.value, type)) {
          collect(selection.selectionSet.selections, inner);
        }
        continue;
      }
      const name = selection.name.value;
      const seen = inner ? spreadDeferred : spread;
      const fragment = scope.fragments.get(name);
      if (!fragment || seen.has(name) || spread.has(name)) continue;
      seen.add(name);
      if (isApplicable(scope.schema, fragment.typeCondition.name.value, type)) {
        collect(fragment.selectionSet.selections, inner);
      }
    }
  }
}

/** Returns what all nodes of one key select together. */
export function selectionsOf(nodes: readonly FieldNode[]): readonly SelectionNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet?.selections ?? []);
}

export function isIncluded(
  { isTrue }: Pick<SelectionScope, 'isTrue'>,
  directives: readonly DirectiveNode[] = [],
): boolean {
  return directives.every(({ name: { value: name }, arguments: [condition] = [] }) => {
    if (name !== 'skip' && name !== 'include') return true;
    return valueOf(condition?.value, isTrue) === (name === 'include');
  });
}

/** Returns the `@defer` among these directives, if it has an effect. */
export function deferOf(
  { isTrue, defers = false }: Pick<SelectionScope, 'isTrue' | 'defers'>,
  directives: readonly DirectiveNode[] = [],
): DeferUse | undefined {
  const defer = !defers ? undefined : directives.find(({ name }) => name.value === 'defer');
  if (!defer) return undefined;
  const argument = (wanted: string) =>
    defer.arguments?.find(({ name }) => name.value === wanted)?.value;
  const condition = argument('if');
  if (condition && !valueOf(condition, isTrue)) return undefined;
  const label = argument('label');
  return { label: label?.kind === Kind.STRING ? label.value : undefined };
}

/** Whether one of these nodes has a `@stream` whose `if` is true. */
export function isStreamed(
  { isTrue }: Pick<SelectionScope, 'isTrue'>,
  nodes: readonly FieldNode[],
): boolean {
  return nodes.some(({ directives = [] }) =>
    directives.some(({ name, arguments: args = [] }) => {
      const condition = args.find((argument) => argument.name.value === 'if')?.value;
      return name.value === 'stream' && (!condition || valueOf(condition, isTrue));
    }),
  );
}

type Argument = NonNullable<DirectiveNode['arguments']>[number];

function valueOf(value: Argument['value'] | undefined, isTrue: SelectionScope['isTrue']): boolean {
  if (value?.kind === Kind.VARIABLE) return isTrue(value.name.value);
  return value?.kind === Kind.BOOLEAN && value.value;
}

/** Whether a fragment on a type (undefined: without one) applies to each object of another one. */
export function isApplicable(
  schema: GraphQLSchema,
  on: string | undefined,
  type: GraphQLCompositeType,
): boolean {
  if (on === undefined || on === type.name) return true;
  const condition = schema.getType(on);
  if (isObjectType(condition)) return false;
  // The type may be of another schema, and graphql 17 goes by identity.
  const own = schema.getType(type.name);
  return isAbstractType(condition) && isObjectType(own) && schema.isSubType(condition, own);
}
