import { astFromType } from '@graphql-tools/utils';
import {
  Kind,
  type ArgumentNode,
  type DirectiveNode,
  type FieldNode,
  type GraphQLInputType,
  type InlineFragmentNode,
  type SelectionNode,
  type VariableDefinitionNode,
} from 'graphql';

/*
 * What the gateway itself adds to a document before it sends it, as nodes of its syntax tree. All aliases and variables
 * that it invents begin with `_rs`; callers must not use such keys.
 */

export function fieldNode(
  name: string,
  {
    alias,
    args,
    selections,
  }: {
    readonly alias?: string | undefined;
    readonly args?: readonly ArgumentNode[];
    readonly selections?: readonly SelectionNode[];
  } = {},
): FieldNode {
  return {
    kind: Kind.FIELD,
    name: { kind: Kind.NAME, value: name },
    ...(alias !== undefined && alias !== name && { alias: { kind: Kind.NAME, value: alias } }),
    ...(args && { arguments: args }),
    ...(selections && { selectionSet: { kind: Kind.SELECTION_SET, selections } }),
  };
}

/** @param type undefined: the fragment has no type condition */
export function fragmentNode(
  type: string | undefined,
  selections: readonly SelectionNode[],
  directives: readonly DirectiveNode[] = [],
): InlineFragmentNode {
  return {
    kind: Kind.INLINE_FRAGMENT,
    ...(type !== undefined && {
      typeCondition: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: type } },
    }),
    directives,
    selectionSet: { kind: Kind.SELECTION_SET, selections },
  };
}

export function argumentNode(name: string, variable: string): ArgumentNode {
  return {
    kind: Kind.ARGUMENT,
    name: { kind: Kind.NAME, value: name },
    value: variableNode(variable),
  };
}

export function variableDefinitionNode(
  name: string,
  type: GraphQLInputType,
): VariableDefinitionNode {
  return { kind: Kind.VARIABLE_DEFINITION, variable: variableNode(name), type: astFromType(type) };
}

function variableNode(name: string) {
  return { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: name } } as const;
}

/** The key of what is selected where nothing else is. */
export const EMPTY_KEY = '_rs_empty';

/**
 * Returns the selections; `__typename` if there are none. A caller may select no field of the records, but GraphQL does
 * not allow an empty selection.
 */
export function orTypename(selections: readonly SelectionNode[]): readonly SelectionNode[] {
  return selections.length > 0 ? selections : [fieldNode('__typename', { alias: EMPTY_KEY })];
}

/** The key of a field in the answer. */
export function keyOf({ alias, name }: FieldNode): string {
  return (alias ?? name).value;
}

/** Whether a directive decides if a field is selected. */
export function isCondition({ name }: DirectiveNode): boolean {
  return name.value === 'skip' || name.value === 'include';
}
