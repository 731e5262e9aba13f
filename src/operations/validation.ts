import {
  GraphQLError,
  NoSchemaIntrospectionCustomRule,
  specifiedRules,
  validate,
  type ASTVisitor,
  type DocumentNode,
  type GraphQLSchema,
  type NameNode,
  type ValidationContext,
} from 'graphql';
import { codedError } from '../errors.ts';

export interface ValidationRules {
  /** The offered schema for requests; the served one for what added fields delegate. */
  readonly schema: GraphQLSchema;
  /** If false, introspection is an error, and messages suggest no names. */
  readonly introspection: boolean;
  /** Whether the names that the gateway adds to its requests are allowed: added fields delegate with them. Default: false. */
  readonly allowsReservedNames?: boolean | undefined;
}

/** Validates a document against the specification and reserved names. */
export function validationErrors(
  document: DocumentNode,
  { schema, introspection, allowsReservedNames }: ValidationRules,
): readonly GraphQLError[] {
  const rules = [
    ...specifiedRules,
    ...(allowsReservedNames ? [] : [noReservedNames]),
    ...(introspection ? [] : [NoSchemaIntrospectionCustomRule]),
  ];
  return validate(schema, document, rules, { hideSuggestions: !introspection });
}

/**
 * Refuses the names that the gateway adds to its requests: they would clash, and the service would report errors in
 * fields that the caller did not write.
 *
 * Routers use names that begin with `__`, so of those only `__typename` is reserved.
 */
function noReservedNames(context: ValidationContext): ASTVisitor {
  const refuse = (node: NameNode) => {
    const { message, extensions } = codedError(
      'BAD_USER_INPUT',
      `The name ${node.value} is reserved, like all names that begin with "_rs". Choose another name.`,
    );
    context.reportError(new GraphQLError(message, { extensions, nodes: [node] }));
  };
  return {
    Field: ({ alias, name }) => {
      if (alias?.value === '__typename' && name.value !== '__typename') refuse(alias);
    },
    Name: (node) => {
      if (node.value.startsWith('_rs')) refuse(node);
    },
  };
}
