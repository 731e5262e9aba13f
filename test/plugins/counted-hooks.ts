import { getOperationAST, type DocumentNode, type ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';

/** What one request showed to the hooks of a plugin. */
export interface Seen {
  /** The hooks that were called, in their order. */
  readonly hooks: string[];
  query?: string | undefined;
  params?: unknown;
  document?: DocumentNode;
  parsed?: unknown;
  valid?: boolean;
  errorsOfValidation?: readonly unknown[];
  variables?: unknown;
  operationName?: string | undefined;
  operationType?: string | undefined;
  /** Copies, as plugins make them. */
  readonly results: ExecutionResult[];
  status?: number;
}

/** A plugin with every hook. It changes nothing, and reads everything. @param seen receives one for each request */
export function countedHooks(seen: Seen[]): Plugin {
  const now = (hook: string): Seen => {
    const current = seen.at(-1)!;
    current.hooks.push(hook);
    return current;
  };
  const saw = (hook: string, result: ExecutionResult) => {
    const copy = { ...result };
    Object.assign(copy, { data: result.data, errors: result.errors });
    for (const key of ['data', 'errors'] as const) if (!(key in result)) delete copy[key];
    now(hook).results.push(copy);
  };
  return {
    onRequest() {
      seen.push({ hooks: [], results: [] });
      now('request');
    },
    onRequestParse() {
      now('requestParse');
      return { onRequestParseDone: () => void now('requestParseDone') };
    },
    onParams({ params }) {
      now('params').params = { ...params };
    },
    onEnveloped() {
      now('enveloped');
    },
    onParse({ params: { source } }) {
      now('parse').query = String(source);
      return ({ result }) => {
        now('parseDone').parsed = result;
      };
    },
    onValidate({ params: { documentAST } }) {
      now('validate').document = documentAST;
      return ({ valid, result }) => {
        Object.assign(now('validateDone'), { valid, errorsOfValidation: result });
      };
    },
    onContextBuilding() {
      now('context');
      return () => void now('contextDone');
    },
    onExecute({ args }) {
      const { document, variableValues, operationName } = args;
      Object.assign(now('execute'), {
        document,
        variables: variableValues,
        operationName,
        operationType: getOperationAST(document, operationName)?.operation,
      });
      return {
        onExecuteDone({ result }) {
          if (!isAsyncIterable(result)) return saw('executeDone', result);
          now('executeDone');
          return {
            onNext: ({ result: payload }) => saw('next', payload),
            onEnd: () => void now('end'),
          };
        },
      };
    },
    onExecutionResult() {
      now('executionResult');
    },
    onResultProcess() {
      now('resultProcess');
    },
    onResponse({ response }) {
      // Nothing else is seen of a request that the gateway refuses before it is read.
      if (seen.length === 0) seen.push({ hooks: [], results: [] });
      const current = now('response');
      current.status = response.status;
    },
  };
}
