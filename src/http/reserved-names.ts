import { GraphQLError, type ASTVisitor, type ValidationContext } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { codedError } from '../errors.ts';

/**
 * Keeps callers off the names that the gateway gives in the requests it writes: they would clash there, and
 * the service would complain of things that no caller wrote.
 */
export const reservedNames: Plugin = {
  onValidate({ addValidationRule }) {
    addValidationRule(noReservedNames);
  },
};

function noReservedNames(context: ValidationContext): ASTVisitor {
  const check = (name: string | undefined, what: string, node: GraphQLError['nodes']) => {
    if (name === undefined || !(name.startsWith('_rs') || name.startsWith('__'))) return;
    const { message, extensions } = codedError(
      'BAD_USER_INPUT',
      `The ${what} ${name} is reserved, like all that begin with "_rs" or "__". Choose another name.`,
    );
    context.reportError(new GraphQLError(message, { extensions, ...(node && { nodes: node }) }));
  };
  return {
    Field: (node) => check(node.alias?.value, 'alias', [node]),
    VariableDefinition: (node) => check(node.variable.name.value, 'variable', [node]),
  };
}
