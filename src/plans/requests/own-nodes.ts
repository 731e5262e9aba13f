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

/** Makes a field that the gateway adds to a request. */
export function field(
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
export function argument(name: string, value: string | ValueNode): ArgumentNode {
  return {
    kind: Kind.ARGUMENT,
    name: { kind: Kind.NAME, value: name },
    value: typeof value === 'string' ? variable(value) : value,
  };
}

export function variableDefinition(name: string, type: GraphQLInputType): VariableDefinitionNode {
  return {
    kind: Kind.VARIABLE_DEFINITION,
    variable: variable(name),
    type: astFromType(type),
  };
}

function variable(name: string) {
  return { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: name } } as const;
}

/** A caller may select nothing of the records, but GraphQL does not allow an empty selection. */
export function notEmpty(selections: readonly SelectionNode[]): readonly SelectionNode[] {
  return selections.length > 0 ? selections : [field('__typename', { alias: '_rsEmpty' })];
}
