import {
  doTypesOverlap,
  isObjectType,
  Kind,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  type InlineFragmentNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import { ADDED_KEY_PREFIX } from '../../answers/answer-errors.ts';
import { globalIdKey } from '../../answers/shape.ts';
import { codedError } from '../../errors.ts';
import type { NodeInterface } from '../../schema/derived.ts';
import { fragmentsOf } from '../../selections.ts';
import { fragmentNode, orTypename } from './request-text.ts';

/** Fragments on Node are written out wherever they are spread, so nested ones could grow without end. */
const MAX_WRITTEN = 1_000;

/**
 * Makes a function that rewrites a document for the service, which has neither Node nor global ids. The function
 * returns the document itself if nothing has to be rewritten.
 *
 * - `recordId` becomes the service's `id`.
 * - An `id` gets an alias where the ids of the service have several types: see `globalIdKey`.
 * - Fragments on Node are written out: for each type that implements it, or without a type where only one is possible.
 *
 * @param schema as callers see it
 */
export function nodeSelections(
  schema: GraphQLSchema,
  nodes: NodeInterface,
): (document: DocumentNode) => DocumentNode {
  const node = schema.getType(nodes.type);
  return (document) => {
    const fragments = fragmentsOf(document);
    const types = new TypeInfo(schema);
    let written = 0;

    const rewrittenField = (field: FieldNode, parent: GraphQLCompositeType) => {
      const { value: name } = field.name;
      const { value: key } = field.alias ?? field.name;
      const type = nodes.ids.get(parent.name);
      if (type && name === nodes.recordId) return [aliased(field, key)];
      if (name !== 'id' || key.startsWith(ADDED_KEY_PREFIX)) return [field];
      if (isObjectType(parent)) {
        const sentKey = type && globalIdKey(type, parent.name, key);
        return sentKey === undefined ? [field] : [aliased(field, sentKey)];
      }
      const possible = schema.getPossibleTypes(parent as never).map((object) => object.name);
      const isAliased = possible.some((object) => {
        const id = nodes.ids.get(object);
        return id && globalIdKey(id, object, key) !== undefined;
      });
      return isAliased ? possible.map((object) => on(object, [field])) : [field];
    };

    const rewritten = (
      selection: SelectionNode,
      parent: GraphQLCompositeType,
    ): readonly SelectionNode[] => {
      if (selection.kind === Kind.FIELD) return rewrittenField(selection, parent);
      const { typeCondition, selectionSet } =
        selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value)!;
      const condition = typeCondition ? schema.getType(typeCondition.name.value) : parent;
      if (condition !== node) {
        // It may be inside a fragment on Node that is written out for a type to which this one does not apply.
        const isPossible = doTypesOverlap(schema, parent, condition as GraphQLCompositeType);
        return isPossible ? [selection] : [];
      }
      const { selections } = selectionSet;
      if (isObjectType(parent) || parent === node)
        return [on(undefined, selections, selection.directives)];
      return schema
        .getPossibleTypes(parent as never)
        .filter(({ name }) => nodes.implementedBy.has(name))
        .map(({ name }) => on(name, selections, selection.directives));
    };

    const on = (
      type: string | undefined,
      selections: readonly SelectionNode[],
      directives?: InlineFragmentNode['directives'],
    ): InlineFragmentNode => {
      written += 1;
      if (written > MAX_WRITTEN) throw tooManyFragments(nodes.type);
      return fragmentNode(type, selections, directives);
    };

    return visit(
      document,
      visitWithTypeInfo(types, {
        // It is not sent.
        FragmentDefinition: ({ typeCondition }) =>
          typeCondition.name.value === nodes.type ? false : undefined,
        SelectionSet: {
          enter: (selectionSet): SelectionSetNode | undefined => {
            const parent = types.getParentType();
            if (!parent) return undefined;
            const each = selectionSet.selections.map((selection) => rewritten(selection, parent));
            const isSame = each.every(
              (parts, at) => parts.length === 1 && parts[0] === selectionSet.selections[at],
            );
            return isSame ? undefined : { ...selectionSet, selections: each.flat() };
          },
          leave: (selectionSet, _, parent) =>
            isEmpty(selectionSet) && (parent as SelectionNode).kind !== Kind.INLINE_FRAGMENT
              ? { ...selectionSet, selections: orTypename([]) }
              : undefined,
        },
        InlineFragment: {
          leave: ({ selectionSet }) => (isEmpty(selectionSet) ? null : undefined),
        },
      }),
    );
  };
}

function aliased(field: FieldNode, key: string): FieldNode {
  return {
    ...field,
    alias: { kind: Kind.NAME, value: key },
    name: { kind: Kind.NAME, value: 'id' },
  };
}

function isEmpty({ selections }: SelectionSetNode): boolean {
  return selections.length === 0;
}

function tooManyFragments(type: string) {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `The operation has fragments on ${type} at more than ${MAX_WRITTEN} places; a fragment counts wherever it is spread. Split the operation.`,
  );
}
