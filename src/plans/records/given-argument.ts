import { getArgumentValues } from '@graphql-tools/utils';
import {
  Kind,
  type FieldNode,
  type GraphQLField,
  type ValueNode,
  type VariableDefinitionNode,
} from 'graphql';
import { parseJson } from '../../json.ts';
import type { CallVariables } from '../call.ts';

export interface ArgumentOfField {
  readonly definition: GraphQLField<unknown, unknown>;
  readonly node: FieldNode;
  readonly argument: string;
  /** Of the operation. */
  readonly variableDefinitions: readonly VariableDefinitionNode[];
}

/**
 * Makes a function that reads an argument that must not be null, as it was given. It is not coerced to its type, because
 * numbers would lose digits: where they may, they are `Json`.
 */
export function givenArgument({
  definition,
  node,
  argument,
  variableDefinitions,
}: ArgumentOfField): (variables: CallVariables) => unknown {
  const value = node.arguments!.find(({ name }) => name.value === argument)!.value;
  const defaults = new Map(
    variableDefinitions.map(({ variable, defaultValue }) => [variable.name.value, defaultValue]),
  );
  return (variables) => {
    // Throws if the argument is null, or has a null where none is allowed.
    getArgumentValues(definition, node, variables.values);
    return given(value, variables);
  };

  function given(from: ValueNode, variables: CallVariables): unknown {
    switch (from.kind) {
      case Kind.VARIABLE: {
        const { value: name } = from.name;
        const own = variables.given(name);
        const other = own === undefined ? defaults.get(name) : undefined;
        return other ? given(other, variables) : own;
      }
      case Kind.INT:
      case Kind.FLOAT:
        return parseJson(from.value);
      case Kind.LIST:
        return from.values.map((one) => given(one, variables));
      case Kind.OBJECT:
        return Object.fromEntries(
          from.fields.map((field) => [field.name.value, given(field.value, variables)]),
        );
      case Kind.NULL:
        return null;
      default:
        return from.value;
    }
  }
}
