import {
  isAbstractType,
  isObjectType,
  Kind,
  type DirectiveNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLError,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import { codedError } from '../errors.ts';
import {
  refusalOf,
  walkFields,
  type FieldWalk,
  type Fragments,
  type Refused,
} from '../selections.ts';

/** What decides which selections of an operation count. */
export interface SelectionScope {
  /** As callers see it. */
  readonly schema: GraphQLSchema;
  readonly fragments: Fragments;
  /**
   * Returns the value of a Boolean variable in the `if` of a directive. Null if the caller passed null: a variable with
   * a default may be null, although no `if` may.
   */
  readonly condition: (variable: string) => boolean | null;
  /** Whether `@defer` has an effect. Default: false. */
  readonly defers?: boolean;
}

/** The field nodes of one key of the answer, which are merged (specification, 6.3.2). */
export interface CollectedField {
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  /** The `@defer` that applies to it; undefined if any of its nodes is not deferred. */
  readonly deferred: DeferUse | undefined;
  /**
   * Set if any of its nodes selects a field that the caller may not read: `nodes` are the nodes that are sent instead.
   */
  readonly refused?: Refused | undefined;
}

export interface DeferUse {
  readonly label: string | undefined;
}

export interface CollectedFields {
  readonly fields: ReadonlyMap<string, CollectedField>;
  /**
   * The error of a condition that is null: there are no fields then, and each object with this selection is null, as in
   * graphql-js.
   */
  readonly refusal: GraphQLError | undefined;
}

/**
 * Collects the fields of an object of this type, in the order of the answer. For an abstract type: those that are
 * selected for every type of object.
 */
export function collectFields(
  scope: SelectionScope,
  type: GraphQLCompositeType,
  selections: readonly SelectionNode[],
): CollectedFields {
  const fields = new Map<
    string,
    {
      readonly key: string;
      nodes: FieldNode[];
      deferred: DeferUse | undefined;
      refused: Refused | undefined;
    }
  >();
  const undeferred = new Set<string>();
  let isRefused = false;
  const isLeftOut = ({ directives }: SelectionNode): boolean => {
    const included = inclusionOf(scope, directives);
    isRefused ||= included === null;
    return included !== true;
  };
  const walk: FieldWalk<{ readonly deferred: DeferUse | undefined }> = {
    fragments: scope.fragments,
    enter: (selection, { typeCondition }, outer) => {
      const { directives } = selection;
      const name = selection.kind === Kind.FRAGMENT_SPREAD ? selection.name.value : undefined;
      if (name !== undefined && undeferred.has(name)) return undefined;
      if (isLeftOut(selection)) return undefined;
      if (!isApplicable(scope.schema, typeCondition?.name.value, type)) return undefined;
      isRefused ||= conditionOf(scope, directives, 'defer') === null;
      const deferred = deferOf(scope, directives) ?? outer.deferred;
      if (name !== undefined && !deferred) undeferred.add(name);
      return { deferred };
    },
    // A fragment counts once, but a deferred one counts again where it is not deferred.
    keyOf: ({ deferred }) => deferred !== undefined,
    field: (node, { deferred }) => {
      if (isLeftOut(node)) return;
      const refused = refusalOf(node);
      const key = refused?.key ?? (node.alias ?? node.name).value;
      const field = fields.get(key);
      if (!field) {
        fields.set(key, { key, nodes: [node], deferred, refused });
        return;
      }
      field.deferred &&= deferred;
      if (refused && !field.refused) {
        field.refused = refused;
        field.nodes = [node];
      } else if (!field.refused || refused) field.nodes.push(node);
    },
  };
  walkFields(selections, { deferred: undefined }, walk);
  return isRefused
    ? { fields: new Map(), refusal: nullCondition() }
    : { fields, refusal: undefined };
}

/** Whether a selection counts. One whose condition is null is sent to the service, which refuses it. */
export function isIncluded(
  scope: Pick<SelectionScope, 'condition'>,
  directives: readonly DirectiveNode[] | undefined,
): boolean {
  return inclusionOf(scope, directives) !== false;
}

/** Null if a condition is null. `@skip` takes precedence, as in graphql-js. */
function inclusionOf(
  scope: Pick<SelectionScope, 'condition'>,
  directives: readonly DirectiveNode[] = [],
): boolean | null {
  const skipped = conditionOf(scope, directives, 'skip');
  if (skipped === null) return null;
  if (skipped) return false;
  const included = conditionOf(scope, directives, 'include');
  return included === undefined || included;
}

/** Returns the `@defer` among these directives, if it has an effect. */
export function deferOf(
  scope: Pick<SelectionScope, 'condition' | 'defers'>,
  directives: readonly DirectiveNode[] = [],
): DeferUse | undefined {
  if (!scope.defers || !conditionOf(scope, directives, 'defer')) return undefined;
  const label = argumentOf(directives, 'defer', 'label');
  return { label: label?.kind === Kind.STRING ? label.value : undefined };
}

/** Whether one of these nodes has a `@stream` whose `if` is true. */
export function isStreamed(
  scope: Pick<SelectionScope, 'condition'>,
  nodes: readonly FieldNode[],
): boolean {
  return nodes.some(({ directives }) => conditionOf(scope, directives, 'stream'));
}

/** Returns the error of a list whose `@stream` has a condition that is null: the list is null then. */
export function refusedStream(
  scope: Pick<SelectionScope, 'condition'>,
  nodes: readonly FieldNode[],
): GraphQLError | undefined {
  const isNull = nodes.some(({ directives }) => conditionOf(scope, directives, 'stream') === null);
  return isNull ? nullCondition() : undefined;
}

/** Returns the `if` of the directive with this name; undefined without such a directive. */
export function conditionOf(
  { condition }: Pick<SelectionScope, 'condition'>,
  directives: readonly DirectiveNode[] = [],
  name: string,
): boolean | null | undefined {
  if (!directives.some((node) => node.name.value === name)) return undefined;
  const value = argumentOf(directives, name, 'if');
  if (value?.kind === Kind.VARIABLE) return condition(value.name.value);
  return value?.kind !== Kind.BOOLEAN || value.value;
}

function argumentOf(directives: readonly DirectiveNode[], directive: string, argument: string) {
  const node = directives.find(({ name }) => name.value === directive);
  return node?.arguments?.find(({ name }) => name.value === argument)?.value;
}

/** Creates the same error as graphql-js. */
function nullCondition(): GraphQLError {
  return codedError(
    'BAD_USER_INPUT',
    'Argument "if" of non-null type "Boolean!" must not be null.',
  );
}

/** Whether a fragment on a type (undefined: without one) applies to each object of another one. */
function isApplicable(
  schema: GraphQLSchema,
  on: string | undefined,
  type: GraphQLCompositeType,
): boolean {
  if (on === undefined || on === type.name) return true;
  const condition = schema.getType(on);
  if (isObjectType(condition)) return false;
  return isAbstractType(condition) && isObjectType(type) && schema.isSubType(condition, type);
}
