import {
  getDirectiveValues,
  GraphQLIncludeDirective,
  GraphQLSkipDirective,
  Kind,
  type DirectiveNode,
  type FieldNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Fragments } from '../selections.ts';
import { checkDirectivesAt, fragmentNode, isCondition, keyOf } from './syntax.ts';

/** What selections have for one object under one key. */
export interface SelectedField {
  readonly key: string;
  readonly name: string;
  /** The places where it is selected. All have the same arguments (5.3.2 of the specification). */
  readonly uses: readonly FieldUse[];
}

/** A field node, with the directives of each selection around it and its own, from the outside. */
interface FieldUse {
  readonly node: FieldNode;
  /** The type condition of the innermost fragment around it that has one. */
  readonly on: string | undefined;
  readonly directives: readonly (readonly DirectiveNode[])[];
}

/** Groups the fields that a selection set has for one object, in the order of the answer, whatever their conditions. */
export function selectedFields(
  { selections }: SelectionSetNode,
  fragments: Fragments,
): readonly SelectedField[] {
  return grouped([{ selections, directives: [] }], fragments);
}

/** Groups the fields that are selected below a field. */
export function fieldsBelow({ uses }: SelectedField, fragments: Fragments) {
  const sets = uses.map(({ node, directives }) => ({
    selections: node.selectionSet?.selections ?? [],
    directives,
  }));
  return grouped(sets, fragments);
}

interface ConditionalSelections {
  readonly selections: readonly SelectionNode[];
  readonly directives: FieldUse['directives'];
}

function grouped(
  sets: readonly ConditionalSelections[],
  fragments: Fragments,
): readonly SelectedField[] {
  const fields = new Map<string, SelectedField & { readonly uses: FieldUse[] }>();
  // A fragment without conditions has the same fields wherever it is spread.
  const entered = new Set<string>();
  const collect = (
    selections: readonly SelectionNode[],
    outer: readonly (readonly DirectiveNode[])[],
    on: string | undefined,
  ): void => {
    for (const selection of selections) {
      const { directives: own = [] } = selection;
      let directives = own.length > 0 ? [...outer, own] : outer;
      if (selection.kind === Kind.FIELD) {
        const key = keyOf(selection);
        const use = { node: selection, directives, on };
        const known = fields.get(key);
        if (known) known.uses.push(use);
        else fields.set(key, { key, name: selection.name.value, uses: [use] });
        continue;
      }
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        const condition = selection.typeCondition?.name.value ?? on;
        collect(selection.selectionSet.selections, directives, condition);
        continue;
      }
      const fragment = fragments.get(selection.name.value);
      // Before validation, a document may spread one that it does not have.
      if (!fragment) continue;
      if (fragment.directives && fragment.directives.length > 0) {
        directives = [...directives, fragment.directives];
      }
      if (directives.length === 0) {
        if (entered.has(selection.name.value)) continue;
        entered.add(selection.name.value);
      }
      collect(fragment.selectionSet.selections, directives, fragment.typeCondition.name.value);
    }
  };
  for (const { selections, directives } of sets) collect(selections, directives, undefined);
  return [...fields.values()];
}

/** Returns the fields that `@skip` and `@include` select. @param values of the variables */
export function selectedNow(
  fields: readonly SelectedField[],
  values: Readonly<Record<string, unknown>>,
): readonly SelectedField[] {
  return fields.filter((field) => isSelected(field, values));
}

export function isSelected(
  { uses }: SelectedField,
  values: Readonly<Record<string, unknown>>,
): boolean {
  return uses.some((use) => isTrue(use, values));
}

function isTrue({ directives }: FieldUse, values: Readonly<Record<string, unknown>>): boolean {
  return directives.every((each) => areTrue(each, values));
}

/** Whether `@skip` and `@include` among these directives let a selection through. */
function areTrue(
  directives: readonly DirectiveNode[],
  values: Readonly<Record<string, unknown>>,
): boolean {
  if (directives.length === 0) return true;
  const node = { directives };
  const variables = { ...values };
  return (
    getDirectiveValues(GraphQLSkipDirective, node, variables)?.['if'] !== true &&
    getDirectiveValues(GraphQLIncludeDirective, node, variables)?.['if'] !== false
  );
}

/**
 * Returns what is selected below a field that the gateway answers itself. What several places select under different
 * conditions is sent under these conditions.
 */
export function selectionsBelow({ uses }: SelectedField): readonly SelectionNode[] {
  return uses.flatMap(({ node, directives }) =>
    underConditions(node.selectionSet?.selections ?? [], directives),
  );
}

/** Returns selections under the `@skip` and `@include` among the directives around them. */
export function underConditions(
  selections: readonly SelectionNode[],
  around: FieldUse['directives'],
): readonly SelectionNode[] {
  return around.reduceRight<readonly SelectionNode[]>((inner, each) => {
    const conditions = each.filter(isCondition);
    return conditions.length > 0 ? [fragmentNode(undefined, inner, conditions)] : inner;
  }, selections);
}

/** @throws BAD_USER_INPUT for a directive of the service on a field that the gateway answers itself, or around it */
export function checkDirectives({ name, uses }: SelectedField): void {
  checkDirectivesAt(
    name,
    uses.flatMap((use) => use.directives.flat()),
  );
}
