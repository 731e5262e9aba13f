import {
  BREAK,
  getOperationAST,
  getVariableValues,
  OperationTypeNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
} from 'graphql';
import { findStreams } from './find-streams.ts';
import { asksForIncremental, withoutIncremental } from './incremental-directives.ts';
import type { ServedSchema } from './served-schema.ts';
import type { ServingContext } from './serving-context.ts';
import { streamedOperation, type ExecutePart } from './streamed-operation.ts';

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
   * `all…` fields of the root are streamed page by page. An operation with any `all…` field has nothing else
   * that comes later: the executor keeps about a megabyte for a thousand things to come. In other operations
   * it does what it is asked.
   *
   * @throws BAD_USER_INPUT
   */
  execute(args: ExecutionArgs, execute: Execute): ReturnType<Execute>;
}

type Execute = (args: ExecutionArgs) => Promise<ExecutionResult | AsyncIterable<ExecutionResult>>;

export function createIncrementalExecution({
  adapters,
  nested,
  createRequests,
}: Pick<ServedSchema, 'adapters' | 'nested' | 'createRequests'>): IncrementalExecution {
  const wholes = new WeakMap<DocumentNode, DocumentNode>();
  const whole = (document: DocumentNode) => {
    const known = wholes.get(document) ?? withoutIncremental(document);
    wholes.set(document, known);
    return known;
  };
  const drained = new Set(
    [...adapters, ...nested].flatMap(({ parent, all }) => (all ? [`${parent}.${all.field}`] : [])),
  );

  return {
    whole,
    isAsked: (args) => {
      const variables = isQuery(args) ? coercedVariables(args) : undefined;
      return variables !== undefined && asksForIncremental(args.document, variables);
    },
    execute: async (args, execute) => {
      if (!drains(args, drained)) return await execute(args);
      const document = whole(args.document);
      const fields = findStreams(args, coercedVariables(args) ?? {}, drained);
      if (fields.length === 0) return await execute({ ...args, document });
      const context = args.contextValue as ServingContext;
      const executePart: ExecutePart = async (part, own) => {
        // Of its own for each part: what they remember would grow with the list.
        const requests = createRequests(context);
        const contextValue: ServingContext = { ...context, ...own, requests };
        // The executor leaves a listener at a signal each time; the walk and its requests have heard of it.
        const { signal: _, ...unsignalled } = args as ExecutionArgs & { signal?: AbortSignal };
        return (await execute({ ...unsignalled, document: part, contextValue })) as ExecutionResult;
      };
      return await streamedOperation(document, fields, executePart);
    },
  };
}

function isQuery({ document, operationName }: ExecutionArgs): boolean {
  return getOperationAST(document, operationName)?.operation === OperationTypeNode.QUERY;
}

/** Undefined when something is wrong with them, which the executor says. */
function coercedVariables(args: ExecutionArgs): Readonly<Record<string, unknown>> | undefined {
  const { schema, document, operationName, variableValues } = args;
  const { variableDefinitions = [] } = getOperationAST(document, operationName) ?? {};
  return getVariableValues(schema, variableDefinitions, variableValues ?? {}).coerced;
}

function drains({ document, schema }: ExecutionArgs, drained: ReadonlySet<string>): boolean {
  const types = new TypeInfo(schema);
  let found = false;
  visit(
    document,
    visitWithTypeInfo(types, {
      Field: ({ name }) => {
        found ||= drained.has(`${types.getParentType()?.name}.${name.value}`);
        return found ? BREAK : undefined;
      },
    }),
  );
  return found;
}
