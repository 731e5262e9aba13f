import { GraphQLError, type ASTNode, type ASTVisitor, type ValidationContext } from 'graphql';
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

/** The library that executes operations takes an object with this name in it for a promise. */
const PROMISED = 'then';

/** Routers use names that begin with `__` as well, so of those only the one that tells types is kept. */
export function noReservedNames(context: ValidationContext): ASTVisitor {
  const refuse = (what: string, name: string, node: ASTNode) => {
    const { message, extensions } = codedError(
      'BAD_USER_INPUT',
      `The ${what} ${name} is reserved, like all that begin with "_rs", and "then". Choose another name.`,
    );
    context.reportError(new GraphQLError(message, { extensions, nodes: [node] }));
  };
  return {
    Field: (node) => {
      const alias = node.alias?.value;
      if (alias === undefined) return;
      const isOther = alias === '__typename' && node.name.value !== '__typename';
      if (isOther || alias === PROMISED || alias.startsWith('_rs')) refuse('alias', alias, node);
    },
    VariableDefinition: (node) => {
      const name = node.variable.name.value;
      if (name.startsWith('_rs')) refuse('variable', name, node);
    },
  };
}
