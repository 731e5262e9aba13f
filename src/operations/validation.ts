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
  type ASTNode,
  type ASTVisitor,
  type DocumentNode,
  type GraphQLSchema,
  type ValidationContext,
} from 'graphql';
import { codedError } from '../errors.ts';

interface ValidationRules {
  readonly schema: GraphQLSchema;
  /** If false, introspection is an error, and messages suggest no names. */
  readonly introspection: boolean;
  /** If true, only errors of fragments are reported: the other rules might not terminate. */
  readonly hasBrokenFragments: boolean;
  /** Whether the names that the gateway adds to its requests are allowed: added fields delegate with them. Default: false. */
  readonly allowsReservedNames?: boolean | undefined;
}

/** Validates a document against the specification, the proposal for `@stream`, and reserved names. */
export function validationErrors(
  document: DocumentNode,
  rules: ValidationRules,
): readonly GraphQLError[] {
  const { schema, introspection, hasBrokenFragments } = rules;
  if (hasBrokenFragments) return validate(schema, document, FRAGMENT_RULES);
  const all = [
    ...RULES,
    ...(rules.allowsReservedNames ? [] : [noReservedNames]),
    ...(introspection ? [] : [NoSchemaIntrospectionCustomRule]),
  ];
  return validate(schema, document, all, { hideSuggestions: !introspection });
}

const FRAGMENT_RULES = [UniqueFragmentNamesRule, NoUnusedFragmentsRule, NoFragmentCyclesRule];

const RULES = [...specifiedRules, streamRules];

/**
 * Refuses the names that the gateway adds to its requests: they would clash, and the service would report errors in
 * fields that the caller did not write.
 *
 * Routers use names that begin with `__`, so of those only `__typename` is reserved.
 */
function noReservedNames(context: ValidationContext): ASTVisitor {
  const refuse = (what: string, name: string, node: ASTNode) => {
    const { message, extensions } = codedError(
      'BAD_USER_INPUT',
      `The ${what} ${name} is reserved, like all names that begin with "_rs". Choose another name.`,
    );
    context.reportError(new GraphQLError(message, { extensions, nodes: [node] }));
  };
  return {
    Field: (node) => {
      const alias = node.alias?.value;
      if (alias === undefined) return;
      const isOther = alias === '__typename' && node.name.value !== '__typename';
      if (isOther || alias.startsWith('_rs')) refuse('alias', alias, node);
    },
    VariableDefinition: (node) => {
      const name = node.variable.name.value;
      if (name.startsWith('_rs')) refuse('variable', name, node);
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
