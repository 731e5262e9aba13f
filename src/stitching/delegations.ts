import { createDefaultExecutor, type SubschemaConfig } from '@graphql-tools/delegate';
import {
  isAsyncIterable,
  relocatedError,
  type ExecutionRequest,
  type Executor,
} from '@graphql-tools/utils';
import {
  Kind,
  valueFromASTUntyped,
  visit,
  type DirectiveNode,
  type ValueNode,
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { createResult } from '../answers/result.ts';
import { codedError, type ErrorCode } from '../errors.ts';
import { Json, losesWriting, parseJson } from '../json.ts';
import type { PlansExecutor } from '../plans/executor.ts';
import {
  NO_KEYS,
  type Keys,
  onlySelected,
  keysOf,
  areInConflict,
  withoutType,
  withPlainKeys,
  withTypedKeys,
} from './private-keys.ts';

/**
 * A number of a custom scalar that JavaScript cannot hold, such as 12345678901234567890. It is written as the service
 * wrote it. In calculations it is the nearest number, and in a text it keeps all of its digits.
 */
class ExactNumber {
  readonly #written: string;

  constructor(written: string) {
    this.#written = written;
  }

  toString(): string {
    return this.#written;
  }

  valueOf(): number {
    return Number(this.#written);
  }

  toJSON(): unknown {
    return rawJson(this.#written);
  }
}

const { rawJSON: rawJson } = JSON as JSON & { readonly rawJSON: (text: string) => unknown };

/** Parses the `data` of an answer. Numbers that JavaScript cannot hold have the type that their field allows. */
function parseExact(text: string, keys: Keys): unknown {
  if (!losesWriting(text)) return JSON.parse(text);
  const json = parseJson(text);
  return json instanceof Json ? objectOf(json, keys) : JSON.parse(text);
}

function objectOf(json: Json, keys: Keys): unknown {
  if (json.kind === 'list')
    return Array.from(json.elements(), (element) => objectOf(element, keys));
  if (json.kind !== 'object') return JSON.parse(json.raw);
  return Object.fromEntries(
    Array.from(json.members(), ([name, value]) => {
      const key = keys.get(name);
      if (key?.leaf === undefined) return [name, objectOf(value, key?.below ?? NO_KEYS)];
      return [name, leafOf(value, key.leaf)];
    }),
  );
}

function leafOf(json: Json, type: string): unknown {
  if (json.kind === 'list') return Array.from(json.elements(), (element) => leafOf(element, type));
  if (json.kind !== 'number') {
    return BUILT_IN.has(type) ? JSON.parse(json.raw) : exactly(json.value);
  }
  // graphql-js writes ids as strings, even if the service wrote a number.
  if (type === 'ID') return json.raw;
  return BUILT_IN.has(type) ? Number(json.raw) : numberOf(json.raw);
}

const BUILT_IN: ReadonlySet<string> = new Set(['ID', 'Int', 'Float', 'String', 'Boolean']);

/** Replaces every `Json` in a value by the number that it holds. */
export function exactly(value: unknown): unknown {
  if (value instanceof Json) return numberOf(value.raw);
  if (Array.isArray(value)) return value.map(exactly);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, exactly(member)]));
}

/** Reads a literal of a custom scalar. */
export function exactLiteral(
  node: ValueNode,
  variables?: Readonly<Record<string, unknown>> | null,
): unknown {
  switch (node.kind) {
    case Kind.INT:
    case Kind.FLOAT:
      return numberOf(node.value);
    case Kind.LIST:
      return node.values.map((element) => exactLiteral(element, variables));
    case Kind.OBJECT:
      return Object.fromEntries(
        node.fields.map(({ name, value }) => [name.value, exactLiteral(value, variables)]),
      );
    default:
      return valueFromASTUntyped(node, variables);
  }
}

function numberOf(written: string): number | ExactNumber {
  const number = Number(written);
  return decimalOf(String(number)) === decimalOf(written) ? number : new ExactNumber(written);
}

/** The value of a number as a text, the same for `1.0`, `1` and `10e-1`. */
function decimalOf(written: string): string {
  const [, sign = '', whole = '', part = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(written) ?? [];
  const digits = `${whole}${part}`.replace(/^0+/, '');
  const short = digits.replace(/0+$/, '');
  if (short === '') return '0';
  return `${sign}${short}e${Number(exponent) - part.length + digits.length - short.length}`;
}

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
  const resultOf = async (request: ExecutionRequest) => {
    const { answer, call, operation } = await delegate(request);
    const { errors } = createResult({ ...answer, data: undefined, extensions: undefined });
    if (!answer.data || !call || !operation) return { data: null, errors, keys: NO_KEYS };
    const selected = keysIn(operation.document);
    const size = answer.data.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
    const data =
      size > MAX_BYTES ? undefined : parseExact(`{${answer.data.map(String).join('')}}`, selected);
    if (data === undefined || !isWithinLimit(request, data)) {
      return { data: null, errors: [tooManyFields()], keys: NO_KEYS };
    }
    return { data, errors, keys: selected };
  };
  return (async (delegated: ExecutionRequest) => {
    const request = withDirectives(delegated);
    const { data, errors: all = [] } = await resultOf(request);
    const errors = all.map(withAdvice);
    if (data !== null) keepUnplaced(request, errors);
    if (data !== null || !areInConflict(errors)) return resultWith(data, errors);
    const document = withTypedKeys(schema, request.document);
    const typed = await resultOf({ ...request, document });
    return resultWith(
      withPlainKeys(typed.data, typed.keys),
      (typed.errors ?? []).map((error) => relocatedError(error, error.path?.map(plainStep))),
    );
  }) as Executor;
}

/** The directives of the service on an operation, and the values of its variables. */
interface OperationDirectives {
  readonly operation: OperationDefinitionNode;
  readonly directives: readonly DirectiveNode[];
  readonly variables: Readonly<Record<string, unknown>>;
}

/** Keyed by the context of a request. */
const directivesOf = new WeakMap<object, OperationDirectives>();

/** Adds the operation's directives, which graphql-tools leaves out, to everything delegated with this context. */
export function delegateDirectives(context: object, directives: OperationDirectives): void {
  directivesOf.set(context, directives);
}

/** A directive of a mutation may not be allowed on the queries that follow it. */
function withDirectives(request: ExecutionRequest): ExecutionRequest {
  const added = directivesOf.get(request.context as object);
  if (!added) return request;
  const { operation, directives, variables } = added;
  const used = new Set<string>();
  for (const directive of directives)
    visit(directive, { Variable: ({ name }) => void used.add(name.value) });
  const document = visit(request.document, {
    OperationDefinition: (node) => {
      if (node.operation !== operation.operation) return false;
      const { variableDefinitions = [] } = node;
      const names = new Set(variableDefinitions.map(({ variable }) => variable.name.value));
      const missing = (operation.variableDefinitions ?? []).filter(
        ({ variable: { name } }) => used.has(name.value) && !names.has(name.value),
      );
      return {
        ...node,
        directives,
        variableDefinitions: [...variableDefinitions, ...missing],
      };
    },
    FragmentDefinition: () => false,
  });
  const values = Object.entries(variables).filter(([name]) => used.has(name));
  return {
    ...request,
    document,
    variables: { ...Object.fromEntries(values), ...request.variables },
  };
}

/** Keyed by the context of a request. */
const unplaced = new WeakMap<object, GraphQLError[]>();

/** Keeps errors without a path. graphql-tools reports them only where a value is null. */
function keepUnplaced({ context }: ExecutionRequest, errors: readonly GraphQLError[]): void {
  const withoutPath = errors.filter(({ path }) => !path);
  if (withoutPath.length === 0) return;
  const key = context as object;
  unplaced.set(key, [...(unplaced.get(key) ?? []), ...withoutPath]);
}

export function unplacedErrors(context: object): readonly GraphQLError[] {
  return unplaced.get(context) ?? [];
}

/** Replaces the advice of an error about MAX_RECORDS: the operator cannot raise this limit. */
function withAdvice(error: GraphQLError): GraphQLError {
  const { code, max } = error.extensions;
  const isOurs = code === ('DRAIN_LIMIT_EXCEEDED' satisfies ErrorCode) && max === MAX_RECORDS;
  return isOurs ? relocatedError(tooManyFields(), error.path) : error;
}

function resultWith(data: unknown, errors: readonly GraphQLError[]) {
  return errors.length > 0 ? { data, errors } : { data };
}

function plainStep(step: string | number): string | number {
  return typeof step === 'string' ? withoutType(step) : step;
}

/** Applies the same limit to the results of another subschema, and drops what was not selected. */
export function withinLimit(config: SubschemaConfig): SubschemaConfig {
  const { schema, executor = createDefaultExecutor(schema) } = config;
  const keys = new WeakMap<DocumentNode, Keys>();
  const limited = async (request: ExecutionRequest) => {
    const { document } = request;
    const result = await executor(request);
    if (isAsyncIterable(result)) return result;
    if (!isWithinLimit(request, result.data)) return resultWith(null, [tooManyFields()]);
    const selected = keys.get(document) ?? keysOf(schema, document);
    keys.set(document, selected);
    return { ...result, data: onlySelected(result.data, selected) };
  };
  return { ...config, executor: limited as Executor };
}

/** The size of one result, bytes. Parsing it takes about 10 ms. */
const MAX_BYTES = 2 * 1024 * 1024;
/**
 * The number of members of all objects that an operation has read, including those that resolvers and merges require.
 */
const MAX_MEMBERS = 10_000;
/** Each record has a key and at least one other member. */
export const MAX_RECORDS = MAX_MEMBERS / 2;

/** Keyed by the context of a request, which has one operation. */
const counts = new WeakMap<object, number>();

function isWithinLimit({ context }: ExecutionRequest, data: unknown): boolean {
  const key = (context ?? {}) as object;
  const count = countMembers(data, counts.get(key) ?? 0);
  counts.set(key, count);
  return count <= MAX_MEMBERS;
}

/** Counts values that a resolver returns. @throws OPERATION_TOO_COMPLEX */
export function countResolved(context: object, values: number): void {
  const count = (counts.get(context) ?? 0) + values;
  counts.set(context, count);
  if (count > MAX_MEMBERS) throw tooManyFields();
}

/** Stops above the limit. */
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

function tooManyFields() {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `The operation selects a field that was added to this gateway, on too many records: together they may have ${MAX_MEMBERS} fields. ` +
      'Request fewer records at a time, with `first` of a connection, or leave out the added fields.',
  );
}
