import {
  getNullableType,
  GraphQLError,
  isListType,
  Kind,
  NoFragmentCyclesRule,
  NoSchemaIntrospectionCustomRule,
  NoUnusedFragmentsRule,
  specifiedRules,
  UniqueFragmentNamesRule,
  validate,
  type ASTNode,
  type ASTVisitor,
  type DirectiveNode,
  type DocumentNode,
  type GraphQLSchema,
  type ValidationContext,
} from 'graphql';
import { codedError } from '../errors.ts';

export interface ValidationRules {
  readonly schema: GraphQLSchema;
  readonly introspection: boolean;
  /** Then these are all that is reported: the other rules would not come to an end. */
  readonly hasBrokenFragments: boolean;
  readonly hideSuggestions: boolean;
}

/** What the specification, the proposal for incremental delivery and the gateway's own names forbid in a document. */
export function validationErrors(
  document: DocumentNode,
  { schema, introspection, hasBrokenFragments, hideSuggestions }: ValidationRules,
): readonly GraphQLError[] {
  if (hasBrokenFragments) return validate(schema, document, FRAGMENT_RULES);
  return validate(schema, document, introspection ? RULES : CLOSED_RULES, { hideSuggestions });
}

const FRAGMENT_RULES = [UniqueFragmentNamesRule, NoUnusedFragmentsRule, NoFragmentCyclesRule];

const RULES = [...specifiedRules, noReservedNames, incrementalRules];
const CLOSED_RULES = [...RULES, NoSchemaIntrospectionCustomRule];

/**
 * Keeps callers off the names that the gateway gives in the requests it writes: they would clash there, and
 * the service would complain of things that no caller wrote.
 *
 * Routers use names that begin with `__` as well, so of those only the one that tells types is kept.
 */
function noReservedNames(context: ValidationContext): ASTVisitor {
  const refuse = (what: string, name: string, node: ASTNode) => {
    const { message, extensions } = codedError(
      'BAD_USER_INPUT',
      `The ${what} ${name} is reserved, like all that begin with "_rs". Choose another name.`,
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

/** What the proposal demands of `@defer` and `@stream`, beyond what holds for every directive. */
function incrementalRules(context: ValidationContext): ASTVisitor {
  const labels = new Map<string, DirectiveNode>();
  return {
    Directive: (node) => {
      const { value: name } = node.name;
      if (name !== 'defer' && name !== 'stream') return;
      const report = (message: string, ...others: DirectiveNode[]) =>
        context.reportError(new GraphQLError(message, { nodes: [node, ...others] }));
      if (name === 'stream') {
        const field = context.getFieldDef();
        if (field && !isListType(getNullableType(field.type))) {
          report(`@stream is for lists, and ${field.name} is none.`);
        }
      }
      const label = node.arguments?.find((argument) => argument.name.value === 'label')?.value;
      if (label === undefined || label.kind === Kind.NULL) return;
      if (label.kind !== Kind.STRING) {
        return report(`The label of @${name} must be written out, not given by a variable.`);
      }
      const other = labels.get(label.value);
      if (other) report(`The label "${label.value}" is used twice; each must be unique.`, other);
      labels.set(label.value, node);
    },
  };
}
