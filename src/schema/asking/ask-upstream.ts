import type { ExecutionRequest, ExecutionResult } from '@graphql-tools/utils';
import {
  isAbstractType,
  Kind,
  OperationTypeNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type ASTNode,
  type DefinitionNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  type VariableDefinitionNode,
} from 'graphql';
import { isIncremental } from '../incremental-directives.ts';
import { parentsTakenAlong } from './ride-names.ts';
import type { RequestTransform } from './served-names.ts';
import { printDocument } from '../../print-document.ts';
import type { AskingContext } from '../serving-context.ts';
import type { UpstreamError, UpstreamValue } from './upstream-value.ts';

/** The upstream, seen through the schema that is served of it. */
export interface UpstreamLink {
  /** The upstream's schema under served names. */
  readonly schema: GraphQLSchema;
  readonly toUpstream: RequestTransform;
  /** Lets the first pages of nested lists ride in what is asked. */
  readonly writeRides: WriteRides;
  /** Gives the answer in served names. */
  readonly execute: (request: ExecutionRequest) => Promise<ExecutionResult>;
}

/**
 * Writes an operation so that the upstream can be asked it: in place of a derived field of a nested list
 * stands the list itself, with its first page, and the id of the parent. Gives the document itself where
 * nothing of it is derived.
 */
export type WriteRides = (
  document: DocumentNode,
  variables: Readonly<Record<string, unknown>>,
  rides: WantedRides,
) => DocumentNode;

/**
 * Which pages ride: all, all but those under these aliases, or `safe`: only those that may be null, so that
 * one that fails takes nothing else with it.
 */
export type WantedRides = 'all' | 'safe' | ReadonlySet<string>;

/** One root field, in served names, that can be asked again and again with other variables. */
export interface UpstreamQuestion {
  readonly operation: OperationTypeNode;
  /** Without an alias: the answer is shared with whoever asks the same under another name. */
  readonly field: FieldNode;
  /** More than are used may be given; what is not used is not sent. */
  readonly variableDefinitions: readonly VariableDefinitionNode[];
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
  /** The caller's own, which decide what is selected. */
  readonly variables: Readonly<Record<string, unknown>>;
}

export type AskUpstream = (
  variables: Readonly<Record<string, unknown>>,
  context: AskingContext,
) => Promise<UpstreamValue>;

/**
 * Makes the request for one root field. The caller's selections, fragments and variables are sent as they
 * stand, with only type names put back, `__typename` added where a type is abstract, and what is derived
 * of nested lists written as the lists themselves.
 *
 * The library's own delegation is not used for this: it drops selections that hold nothing but
 * `__typename`, renames what it takes for overlapping aliases, and loses errors that have no null to stand at.
 */
export function questionFor(link: UpstreamLink, question: UpstreamQuestion): AskUpstream {
  const { operation, field } = question;
  const isQuery = operation === OperationTypeNode.QUERY;
  // A mutation cannot be asked again without what failed of it.
  const request = requestOf(link, question, isQuery ? 'all' : 'safe');
  return async (given, context) => {
    const send = async ({ document, used }: WrittenRequest) => {
      const variables = Object.fromEntries(
        Object.entries(given).filter(([name]) => used.has(name)),
      );
      return isQuery
        ? await context.requests.load({ document, variables })
        : await link.execute({ document, variables, operationType: operation, context });
    };
    let result = await send(request);
    let taken = parentsTakenAlong(result);
    if (isQuery && taken.size > 0) {
      result = await send(requestOf(link, question, taken));
      taken = parentsTakenAlong(result);
    }
    // The first failures may have hidden others.
    if (isQuery && taken.size > 0) result = await send(requestOf(link, question, 'safe'));
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

/** The same for two questions that ask the upstream for the same, however their operations differ. */
export function nameOf(link: UpstreamLink, question: UpstreamQuestion): string {
  const { document, used } = requestOf(link, question, 'all');
  const variables = Object.entries(question.variables).filter(([name]) => used.has(name));
  return JSON.stringify([printDocument(document), variables]);
}

interface WrittenRequest {
  readonly document: DocumentNode;
  /** The variables in it. */
  readonly used: ReadonlySet<string>;
}

function requestOf(
  link: UpstreamLink,
  question: UpstreamQuestion,
  rides: WantedRides,
): WrittenRequest {
  const asked = documentOf(question);
  const ridden = link.writeRides(asked, question.variables, rides);
  const written = withTypenames(ridden === asked ? asked : onlyReached(ridden), link.schema);
  const used = variablesOf(written);
  return { document: link.toUpstream(onlyDefined(written, used)), used };
}

/** Fragments on derived types are written out where they stood, and the upstream does not know them. */
function onlyReached({ definitions }: DocumentNode): DocumentNode {
  const fragments = new Map(
    definitions.flatMap((definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [],
    ),
  );
  const [operation] = definitions;
  return operation
    ? { kind: Kind.DOCUMENT, definitions: [operation, ...reachedFrom(operation, fragments)] }
    : { kind: Kind.DOCUMENT, definitions };
}

function documentOf({
  operation,
  field,
  variableDefinitions,
  fragments,
}: UpstreamQuestion): DocumentNode {
  const definition: DefinitionNode = {
    kind: Kind.OPERATION_DEFINITION,
    operation,
    variableDefinitions,
    selectionSet: { kind: Kind.SELECTION_SET, selections: [field] },
  };
  const reached = reachedFrom(field, new Map(Object.entries(fragments)));
  return { kind: Kind.DOCUMENT, definitions: [definition, ...reached] };
}

function reachedFrom(
  start: ASTNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
): readonly FragmentDefinitionNode[] {
  const reached = new Map<string, FragmentDefinitionNode>();
  const reach = (node: ASTNode) => {
    visit(node, {
      FragmentSpread: ({ name: { value } }) => {
        const fragment = fragments.get(value);
        if (!fragment || reached.has(value)) return;
        reached.set(value, fragment);
        reach(fragment);
      },
    });
  };
  reach(start);
  return [...reached.values()];
}

/**
 * The gateway has to know which type a record of an abstract type has, whether the caller asks or not. What
 * comes later is between the caller and us.
 */
function withTypenames(document: DocumentNode, schema: GraphQLSchema): DocumentNode {
  const types = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(types, {
      SelectionSet: (node) =>
        isAbstractType(types.getParentType())
          ? { ...node, selections: [...node.selections, TYPENAME] }
          : undefined,
      Directive: (node) => (isIncremental(node) ? null : undefined),
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
