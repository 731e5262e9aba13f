import { createDefaultExecutor, type SubschemaConfig } from '@graphql-tools/delegate';
import { isAsyncIterable, type ExecutionRequest, type Executor } from '@graphql-tools/utils';
import type { DocumentNode, GraphQLSchema } from 'graphql';
import { createResult } from '../answers/result.ts';
import { codedError } from '../errors.ts';
import type { PlansExecutor } from '../plans/executor.ts';
import { parseExact } from './exact-values.ts';
import { keysOf, type Keys } from './private-keys.ts';

/**
 * Makes the executor of the served schema for stitching: its results are values of JavaScript, within the limits of
 * what graphql-js can process without blocking other requests.
 */
export function delegations(schema: GraphQLSchema, delegate: PlansExecutor['delegate']): Executor {
  const keys = new WeakMap<DocumentNode, Keys>();
  const keysIn = (document: DocumentNode): Keys => {
    const known = keys.get(document);
    if (known) return known;
    const made = keysOf(schema, document);
    keys.set(document, made);
    return made;
  };
  return (async (request: ExecutionRequest) => {
    const { answer, call, operation, mask } = await delegate(request);
    const { errors } = createResult({ ...answer, data: undefined, extensions: undefined }, mask);
    if (!answer.data || !call || !operation) return { data: null, ...(errors && { errors }) };
    const size = answer.data.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
    if (size > MAX_BYTES) return refused();
    const text = `{${answer.data.map(String).join('')}}`;
    const data = parseExact(text, keysIn(operation.document));
    return isWithinLimit(request, data) ? { data, ...(errors && { errors }) } : refused();
  }) as Executor;
}

/** Applies the same limit to what another subschema returns. */
export function withinLimit(config: SubschemaConfig): SubschemaConfig {
  const { executor = createDefaultExecutor(config.schema) } = config;
  const limited = async (request: ExecutionRequest) => {
    const result = await executor(request);
    return isAsyncIterable(result) || isWithinLimit(request, result.data) ? result : refused();
  };
  return { ...config, executor: limited as Executor };
}

/** Bytes of one result. To parse them takes about 10 ms. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Members of all objects that an operation has read, its own and those that others require. */
const MAX_MEMBERS = 15_000;

/** By the contexts of requests, each of which has one operation. */
const counts = new WeakMap<object, number>();

function isWithinLimit({ context }: ExecutionRequest, data: unknown): boolean {
  const of = (context ?? {}) as object;
  const count = countMembers(data, counts.get(of) ?? 0);
  counts.set(of, count);
  return count <= MAX_MEMBERS;
}

/** Stops when it has counted too many. */
function countMembers(value: unknown, before: number): number {
  let count = before;
  if (Array.isArray(value)) {
    for (const element of value) {
      count = countMembers(element, count);
      if (count > MAX_MEMBERS) break;
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) {
      count = countMembers(member, count + 1);
      if (count > MAX_MEMBERS) break;
    }
  }
  return count;
}

function refused() {
  return {
    data: null,
    errors: [
      codedError(
        'OPERATION_TOO_COMPLEX',
        `The operation selects a field that was added to this gateway, on too many records: together they may have ${MAX_MEMBERS} fields. ` +
          'Request fewer records at a time, with `first` of a connection, or leave out the added fields.',
      ),
    ],
  };
}
