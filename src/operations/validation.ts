import {
  getNullableType,
  GraphQLError,
  isListType,
  NoFragmentCyclesRule,
  NoSchemaIntrospectionCustomRule,
  NoUnusedFragmentsRule,
  specifiedRules,
  UniqueFragmentNamesRule,
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

/**
 * Validates a document against the specification, the proposal for `@stream`, and reserved names.
 *
 * @param isBroken only errors of fragments are reported: what is not measured can make the other rules expensive
 */
export function validationErrors(
  document: DocumentNode,
  { schema, introspection, allowsReservedNames }: ValidationRules,
  isBroken: boolean,
): readonly GraphQLError[] {
  if (isBroken) return validate(schema, document, FRAGMENT_RULES);
  const rules = [
    ...specifiedRules,
    streamRules,
    ...(allowsReservedNames ? [] : [noReservedNames]),
    ...(introspection ? [] : [NoSchemaIntrospectionCustomRule]),
  ];
  return validate(schema, document, rules, { hideSuggestions: !introspection });
}

/** Whether fragments of a document contain themselves, share a name or are not spread. */
export function hasBrokenFragments(schema: GraphQLSchema, document: DocumentNode): boolean {
  return validate(schema, document, FRAGMENT_RULES).length > 0;
}

const FRAGMENT_RULES = [UniqueFragmentNamesRule, NoUnusedFragmentsRule, NoFragmentCyclesRule];

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

/** Refuses `@stream` where the gateway sends no parts, in addition to the rules for all directives. */
function streamRules(context: ValidationContext): ASTVisitor {
  return {
    Directive: (node) => {
      const field = context.getFieldDef();
      if (node.name.value !== 'stream' || !field) return;
      const isAtRoot = context.getParentType() === context.getSchema().getQueryType();
      if (isAtRoot && isListType(getNullableType(field.type))) return;
      const message = `@stream is for lists at the root of a query, but ${field.name} is not one.`;
      context.reportError(new GraphQLError(message, { nodes: [node] }));
    },
  };
}
