import {
  getOperationAST,
  getVariableValues,
  OperationTypeNode,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  type FieldNode,
} from 'graphql';
import type { ServedSchema } from '../served-schema.ts';
import type { ServingContext } from '../serving-context.ts';
import { asksForIncremental, withoutIncremental } from '../incremental-directives.ts';
import type { Execute as ExecutePart } from './execute-part.ts';
import { findStreams } from './find-streams.ts';
import type { StreamPayload } from './payload.ts';
import { settleDirectives } from './settle-directives.ts';
import { streamedOperation } from './streamed-operation.ts';

/** Executes operations with `@defer` and `@stream`. */
export interface IncrementalExecution {
  /** The document as it is executed for one answer; the same one when nothing in it is to come later. */
  whole(document: DocumentNode): DocumentNode;
  /**
   * Whether something is to come later, after `if` and variables. Never of a mutation, whose `@defer` and
   * `@stream` are ignored.
   *
   * @throws BAD_USER_INPUT
   */
  isAsked(args: ExecutionArgs): boolean;
  /**
   * `all…` fields of the root, and `edges` and `nodes` of its connections, are streamed page by page. What is
   * put off elsewhere is the executor's.
   *
   * @throws BAD_USER_INPUT
   */
  execute(args: ExecutionArgs, execute: Execute): ReturnType<Execute>;
}

type Execute = (args: ExecutionArgs) => Promise<ExecutionResult | AsyncIterable<ExecutionResult>>;

export function createIncrementalExecution({
  adapters,
  nested,
  createLoaders,
}: Pick<ServedSchema, 'adapters' | 'nested' | 'createLoaders'>): IncrementalExecution {
  const wholes = new WeakMap<DocumentNode, DocumentNode>();
  const whole = (document: DocumentNode) => {
    const known = wholes.get(document) ?? withoutIncremental(document);
    wholes.set(document, known);
    return known;
  };
  const drains = new Set(
    [...adapters, ...nested].flatMap(({ parent, all }) => (all ? [`${parent}.${all.field}`] : [])),
  );
  const streamable = {
    drains: new Set(adapters.flatMap(({ all }) => all?.field ?? [])),
    connections: new Map(
      adapters.flatMap(({ connection }) =>
        connection ? [[connection.field, connection.type]] : [],
      ),
    ),
  };

  return {
    whole,
    isAsked: (args) => {
      const variables = isQuery(args) ? coercedVariables(args) : undefined;
      return variables !== undefined && asksForIncremental(args.document, variables);
    },
    execute: async (args, execute) => {
      const { schema, document } = args;
      const fields = findStreams(args, coercedVariables(args) ?? {}, streamable);
      const streamed = new Set(fields.flatMap(({ nodes }) => nodes));
      const settled = (part: DocumentNode, mayDefer: (field: FieldNode) => boolean) =>
        settleDirectives(part, { schema, drains, streamed, mayDefer });
      const long = new Set(
        fields.flatMap(({ initialCount, nodes }) => (initialCount > MAX_DEFERRING ? nodes : [])),
      );
      const first = settled(document, (field) => !long.has(field));
      if (fields.length === 0) return await execute({ ...args, document: first });
      const context = args.contextValue as ServingContext;
      const executePart: ExecutePart = async (part, own) => {
        // Of its own for each part: what they remember would grow with the list.
        const contextValue: ServingContext = { ...context, ...own, ...createLoaders(context) };
        // The executor leaves a listener at a signal each time; the walk and its requests have heard of it.
        const { signal: _, ...unsignalled } = args as ExecutionArgs & { signal?: AbortSignal };
        const answer = await execute({ ...unsignalled, document: part, contextValue });
        return answer as ExecutionResult | AsyncIterable<StreamPayload>;
      };
      const parts = fields.map((field) => ({
        ...field,
        document: settled(field.document, () => true),
      }));
      return await streamedOperation(first, parts, executePart);
    },
  };
}

/** Records of a first part in each of which something may be put off. */
const MAX_DEFERRING = 500;

function isQuery({ document, operationName }: ExecutionArgs): boolean {
  return getOperationAST(document, operationName)?.operation === OperationTypeNode.QUERY;
}

/** Undefined when something is wrong with them, which the executor says. */
function coercedVariables(args: ExecutionArgs): Readonly<Record<string, unknown>> | undefined {
  const { schema, document, operationName, variableValues } = args;
  const { variableDefinitions = [] } = getOperationAST(document, operationName) ?? {};
  return getVariableValues(schema, variableDefinitions, variableValues ?? {}).coerced;
}
