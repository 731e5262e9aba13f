import type { ExecutionRequest, ExecutionResult } from '@graphql-tools/utils';
import {
  isAbstractType,
  Kind,
  OperationTypeNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DefinitionNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  type VariableDefinitionNode,
} from 'graphql';
import type { RequestTransform } from './served-names.ts';
import type { AskingContext } from './serving-context.ts';
import type { UpstreamError, UpstreamValue } from './upstream-value.ts';

/** The upstream, seen through the schema that is served of it. */
export interface UpstreamLink {
  /** The upstream's schema under served names. */
  readonly schema: GraphQLSchema;
  readonly toUpstream: RequestTransform;
  /** Gives the answer in served names. */
  readonly execute: (request: ExecutionRequest) => Promise<ExecutionResult>;
}

/** One root field, in served names, that can be asked again and again with other variables. */
export interface UpstreamQuestion {
  readonly operation: OperationTypeNode;
  /** Without an alias: the answer is shared with whoever asks the same under another name. */
  readonly field: FieldNode;
  /** More than are used may be given; what is not used is not sent. */
  readonly variableDefinitions: readonly VariableDefinitionNode[];
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
}

export type AskUpstream = (
  variables: Readonly<Record<string, unknown>>,
  context: AskingContext,
) => Promise<UpstreamValue>;

/**
 * Makes the request for one root field. The caller's selections, fragments and variables are sent as they
 * stand, with only type names put back and `__typename` added where a type is abstract.
 *
 * The library's own delegation is not used for this: it drops selections that hold nothing but
 * `__typename`, renames what it takes for overlapping aliases, and loses errors that have no null to stand at.
 */
export function questionFor(link: UpstreamLink, question: UpstreamQuestion): AskUpstream {
  const { operation, field } = question;
  const written = withTypenames(documentOf(question), link.schema);
  const used = variablesOf(written);
  const document = link.toUpstream(onlyDefined(written, used));
  return async (given, context) => {
    const variables = Object.fromEntries(Object.entries(given).filter(([name]) => used.has(name)));
    const result =
      operation === OperationTypeNode.QUERY
        ? await context.requests.load({ document, variables })
        : await link.execute({ document, variables, operationType: operation, context });
    const { data, errors = [] } = result;
    return {
      value: (data as Record<string, unknown> | null | undefined)?.[field.name.value] ?? null,
      errors: errors.map(({ message, path, extensions }): UpstreamError => ({
        // An error that was put at another field than the one we asked for belongs to this one all the same.
        path: path?.[0] === field.name.value ? path.slice(1) : [],
        message,
        extensions: extensions ?? {},
      })),
    };
  };
}

function documentOf({
  operation,
  field,
  variableDefinitions,
  fragments,
}: UpstreamQuestion): DocumentNode {
  const reached = new Map<string, FragmentDefinitionNode>();
  const reach = (node: FieldNode | FragmentDefinitionNode) => {
    visit(node, {
      FragmentSpread: ({ name: { value } }) => {
        const fragment = fragments[value];
        if (!fragment || reached.has(value)) return;
        reached.set(value, fragment);
        reach(fragment);
      },
    });
  };
  reach(field);
  const definition: DefinitionNode = {
    kind: Kind.OPERATION_DEFINITION,
    operation,
    variableDefinitions,
    selectionSet: { kind: Kind.SELECTION_SET, selections: [field] },
  };
  return { kind: Kind.DOCUMENT, definitions: [definition, ...reached.values()] };
}

/** The gateway has to know which type a record of an abstract type has, whether the caller asks or not. */
function withTypenames(document: DocumentNode, schema: GraphQLSchema): DocumentNode {
  const types = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(types, {
      SelectionSet: (node) =>
        isAbstractType(types.getParentType())
          ? { ...node, selections: [...node.selections, TYPENAME] }
          : undefined,
    }),
  );
}

const TYPENAME: FieldNode = { kind: Kind.FIELD, name: { kind: Kind.NAME, value: '__typename' } };

function variablesOf(document: DocumentNode): Set<string> {
  const used = new Set<string>();
  visit(document, {
    VariableDefinition: () => false,
    Variable: ({ name }) => void used.add(name.value),
  });
  return used;
}

function onlyDefined(document: DocumentNode, used: ReadonlySet<string>): DocumentNode {
  return visit(document, {
    VariableDefinition: (node) => (used.has(node.variable.name.value) ? false : null),
  });
}
