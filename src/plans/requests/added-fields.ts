import { astFromType } from '@graphql-tools/utils';
import {
  Kind,
  type ArgumentNode,
  type FieldNode,
  type GraphQLInputType,
  type SelectionNode,
  type ValueNode,
  type VariableDefinitionNode,
} from 'graphql';

/*
 * What the gateway itself adds to a document before it sends it, as nodes of its syntax tree: fields, their arguments,
 * and variables. The aliases and variables that it invents begin with _rs.
 */

export function fieldNode(
  name: string,
  {
    selections,
    alias,
    args,
  }: {
    selections?: readonly SelectionNode[];
    alias?: string | undefined;
    args?: readonly ArgumentNode[];
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

/** @param value the name of a variable, or a value */
export function argumentNode(name: string, value: string | ValueNode): ArgumentNode {
  return {
    kind: Kind.ARGUMENT,
    name: { kind: Kind.NAME, value: name },
    value: typeof value === 'string' ? variable(value) : value,
  };
}

export function variableDefinitionNode(
  name: string,
  type: GraphQLInputType,
): VariableDefinitionNode {
  return {
    kind: Kind.VARIABLE_DEFINITION,
    variable: variable(name),
    type: astFromType(type),
  };
}

function variable(name: string) {
  return { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: name } } as const;
}

/**
 * Returns the selections; `__typename` if there are none. A caller may select no field of the records, but GraphQL does
 * not allow an empty selection.
 */
export function orTypename(selections: readonly SelectionNode[]): readonly SelectionNode[] {
  return selections.length > 0 ? selections : [fieldNode('__typename', { alias: '_rsEmpty' })];
}
