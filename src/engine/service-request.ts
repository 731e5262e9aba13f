import { randomUUID } from 'node:crypto';
import {
  getNamedType,
  Kind,
  OperationTypeNode,
  print,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type VariableDefinitionNode,
} from 'graphql';
import { mayBePage } from '../schema/derived.ts';
import { isIncremental } from '../schema/incremental-directives.ts';
import type { ServedSchema } from '../schema/served/served-schema.ts';
import { onlyOperation } from '../schema/selections.ts';
import type { OutgoingRequest } from '../upstream/request.ts';
import type { PreparedOperation } from './prepared-operation.ts';

type Values = Readonly<Record<string, unknown>>;

export type ServiceRequest = ReturnType<typeof serviceRequest>;

/**
 * A request to the service, printed once for an operation. Only its variables differ from call to call.
 *
 * Keeps the name, the directives and the variables of the caller's operation. Fragments and variables that are not used
 * are left out, since a service may refuse them, and `@stream`, which is the gateway's own.
 *
 * @param added the variables of the gateway
 */
export function serviceRequest(
  { upstream, toUpstream }: ServedSchema,
  { definition, fragments, nested }: PreparedOperation,
  selections: readonly SelectionNode[],
  added: readonly VariableDefinitionNode[] = [],
) {
  const { variableDefinitions = [], ...operation } = definition;
  const selecting: OperationDefinitionNode = {
    ...operation,
    selectionSet: { kind: Kind.SELECTION_SET, selections },
  };
  const definitions = [selecting, ...fragments.values()];
  const only = onlyOperation({ kind: Kind.DOCUMENT, definitions }, selecting).document;
  const types = new TypeInfo(upstream);
  const used = new Set<string>();
  let pages = 0;
  let isFilled = false;
  const sentNodes: DocumentNode = visit(
    only,
    visitWithTypeInfo(types, {
      Directive: (node) => (isIncremental(node) ? null : undefined),
      Variable: ({ name }) => void used.add(name.value),
      Field: (node) => {
        isFilled ||= nested.has(node);
        const type = getNamedType(types.getType());
        if (type && mayBePage(upstream, type)) pages += 1;
      },
    }),
  );
  const declared = variableDefinitions.filter(({ variable }) => used.has(variable.name.value));
  const document: DocumentNode = visit(sentNodes, {
    OperationDefinition: (node) => ({ ...node, variableDefinitions: [...declared, ...added] }),
  });
  const kind = operation.operation === OperationTypeNode.MUTATION ? 'mutation' : 'query';
  const query = print(toUpstream(document));
  const withoutVariables = JSON.stringify({ query });
  /** Nested lists are not in the text. */
  const fills = isFilled ? randomUUID() : undefined;
  const names = declared.map(({ variable }) => variable.name.value);

  /** Made in one piece: V8 joins pieces when they are read, and copies a megabyte of variables once more. */
  const body = (sent: Values, ofGateway?: Values): string => {
    if (names.length === 0 && !ofGateway) return withoutVariables;
    const variables: Record<string, unknown> = {};
    for (const name of names) if (Object.hasOwn(sent, name)) variables[name] = sent[name];
    return JSON.stringify({ query, variables: { ...variables, ...ofGateway } });
  };
  return {
    /** What it costs: the paged fields that it selects, at least one. */
    pages: Math.max(1, pages),
    /**
     * @param sent the values of the caller's variables, as they were sent: the service sets its defaults
     * @param ofGateway the values of the gateway's variables
     */
    outgoing: (sent: Values, ofGateway?: Values): OutgoingRequest => {
      return { kind, body: body(sent, ofGateway) };
    },
    /**
     * Names what is requested for these variables, and what is filled into it, whatever the values of the gateway's
     * variables are.
     */
    nameWith: (sent: Values) => (fills ? JSON.stringify([fills, sent]) : body(sent)),
  };
}
