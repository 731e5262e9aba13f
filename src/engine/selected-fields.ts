import {
  getArgumentValues,
  GraphQLIncludeDirective,
  GraphQLSkipDirective,
  Kind,
  type DirectiveNode,
  type FieldNode,
  type GraphQLSchema,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import { fieldAt } from '../schema/derived.ts';
import type { Fragments } from '../schema/selections.ts';
import { fragmentNode, isCondition, keyOf } from './syntax.ts';

/** What selections have for one object under one key. */
export interface SelectedField {
  readonly key: string;
  readonly name: string;
  /** The places where it is selected. All have the same arguments (5.3.2 of the specification). */
  readonly uses: readonly FieldUse[];
}

interface FieldUse {
  readonly node: FieldNode;
  /** The type condition of the innermost fragment around it that has one. */
  readonly on: string | undefined;
  /** The `@skip` and `@include` of the selections around it and its own, from the outside. */
  readonly conditions: readonly DirectiveNode[];
}

/** Groups the fields that a selection set has for one object, in the order of the answer, whatever their conditions. */
export function selectedFields(
  { selections }: Pick<SelectionSetNode, 'selections'>,
  fragments: Fragments,
): readonly SelectedField[] {
  return grouped([{ selections, conditions: [] }], fragments);
}

/** Groups the fields that are selected below a field. */
export function fieldsBelow({ uses }: SelectedField, fragments: Fragments) {
  const sets = uses.map(({ node, conditions }) => {
    return { selections: node.selectionSet?.selections ?? [], conditions };
  });
  return grouped(sets, fragments);
}

function grouped(
  sets: readonly {
    readonly selections: readonly SelectionNode[];
    readonly conditions: FieldUse['conditions'];
  }[],
  fragments: Fragments,
): readonly SelectedField[] {
  const fields = new Map<string, SelectedField & { readonly uses: FieldUse[] }>();
  // A fragment without conditions has the same fields wherever it is spread.
  const entered = new Set<string>();
  const collect = (
    selections: readonly SelectionNode[],
    outer: FieldUse['conditions'],
    on: string | undefined,
  ): void => {
    for (const selection of selections) {
      const conditions = [...outer, ...(selection.directives?.filter(isCondition) ?? [])];
      if (selection.kind === Kind.FIELD) {
        const key = keyOf(selection);
        const field = fields.get(key) ?? { key, name: selection.name.value, uses: [] };
        field.uses.push({ node: selection, conditions, on });
        fields.set(key, field);
        continue;
      }
      const isSpread = selection.kind === Kind.FRAGMENT_SPREAD;
      const fragment = isSpread ? fragments.get(selection.name.value) : selection;
      // Before validation, a document may spread one that it does not have.
      if (!fragment) continue;
      if (isSpread && conditions.length === 0) {
        if (entered.has(selection.name.value)) continue;
        entered.add(selection.name.value);
      }
      const type = fragment.typeCondition?.name.value ?? on;
      collect(fragment.selectionSet.selections, conditions, type);
    }
  };
  for (const { selections, conditions } of sets) collect(selections, conditions, undefined);
  return [...fields.values()];
}

/** Returns the arguments of a field. @param parent the type that has the field @param values of the variables */
export function argumentsOf(
  { schema }: { readonly schema: GraphQLSchema },
  parent: string,
  { name, uses }: SelectedField,
  values: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return getArgumentValues(fieldAt(schema, parent, name)!, uses[0]!.node, values);
}

/** Returns the fields that `@skip` and `@include` select. @param values of the variables */
export function selectedNow<F extends SelectedField>(
  fields: readonly F[],
  values: Readonly<Record<string, unknown>>,
): readonly F[] {
  return fields.filter(({ uses }) =>
    uses.some(({ conditions }) => conditions.every((each) => isTrue(each, values))),
  );
}

function isTrue(condition: DirectiveNode, values: Readonly<Record<string, unknown>>): boolean {
  const isSkip = condition.name.value === 'skip';
  const definition = isSkip ? GraphQLSkipDirective : GraphQLIncludeDirective;
  return getArgumentValues(definition, condition, values)['if'] !== isSkip;
}

/**
 * Returns what is selected below a field that the gateway answers itself. What several places select under different
 * conditions is sent under these conditions.
 */
export function selectionsBelow({ uses }: SelectedField): readonly SelectionNode[] {
  return uses.flatMap(({ node, conditions }) =>
    underConditions(node.selectionSet?.selections ?? [], conditions),
  );
}

export function underConditions(
  selections: readonly SelectionNode[],
  conditions: FieldUse['conditions'],
): readonly SelectionNode[] {
  return conditions.reduceRight(
    (inner, condition) => [fragmentNode(undefined, inner, [condition])],
    selections,
  );
}
