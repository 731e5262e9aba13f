import { graphql, printSchema, type GraphQLSchema } from 'graphql';
import { expect } from 'vitest';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { post } from '../support/clients/post.ts';
import { wrote } from '../support/gateway/written.ts';

interface SentOperation {
  readonly query: string;
  readonly variables?: Record<string, unknown> | undefined;
  readonly operationName?: string | undefined;
}

/** Answers one request with the text of a body. */
export type Answering = (operation: SentOperation) => string | Promise<string>;

/** A service that answers with graphql-js. @param amend adds what graphql-js cannot return */
export function serviceOf(
  schema: GraphQLSchema,
  amend: (result: object) => object = (result) => result,
): Answering {
  return async ({ query: source, variables: variableValues, operationName }) => {
    const result = await graphql({ schema, source, variableValues, operationName });
    return JSON.stringify(amend({ ...result }));
  };
}

/** An answer as JSON texts with the digits of the original, without the locations of its errors. */
interface ExactAnswer {
  readonly status: number;
  /** Undefined if the answer has no such member. */
  readonly data: string | undefined;
  /** Empty if the member is null, too. */
  readonly errors: readonly string[] | undefined;
  readonly extensions: string | undefined;
}

/** A service, and the gateway in front of it. */
export interface SideBySide extends AsyncDisposable {
  readonly gateway: GatewayOverService;
  through(operation: SentOperation): Promise<ExactAnswer>;
  /** Sends an operation to both, and fails unless the gateway answers as the service does. */
  expectSame(operation: SentOperation): Promise<Compared>;
}

interface Compared {
  readonly direct: ExactAnswer;
  readonly through: ExactAnswer;
  /** The bodies of the requests that the gateway sent to the service. */
  readonly sent: readonly string[];
}

interface SideBySideOptions {
  /** The schema of the service, and the snapshot of the gateway. */
  readonly schema: GraphQLSchema;
  /** Default: a service that answers with graphql-js. */
  readonly service?: Answering;
  readonly config?: TestGatewayOptions['config'];
}

export async function startSideBySide({
  schema,
  service = serviceOf(schema),
  config,
}: SideBySideOptions): Promise<SideBySide> {
  const gateway = await startGatewayOverService(
    { persons: 0 },
    { snapshot: printSchema(schema), config: { ...GENEROUS, ...config } },
  );
  gateway.service.answer(async (response, { body }) => {
    const text = await service(JSON.parse(body) as SentOperation);
    response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  });
  const through: SideBySide['through'] = async (operation) => {
    const response = await gateway.fetch(
      '/graphql',
      post(operation, { accept: 'application/json' }),
    );
    return exactAnswer(wrote(await response.text()), response.status);
  };
  return {
    gateway,
    through,
    expectSame: async (operation) => {
      const before = gateway.service.received.length;
      const answer = await through(operation);
      const sent = gateway.service.received.slice(before).map(({ body }) => body);
      const direct = exactAnswer(await service(operation));
      const compared = { direct, through: answer, sent };
      expectSameAnswer(compared, operation);
      return compared;
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

/**
 * Answers that the gateway makes itself cannot have the service's `extensions`. Where it refuses what the service
 * refuses, it adds a code, and the messages are the same.
 */
function expectSameAnswer({ direct, through, sent }: Compared, operation: SentOperation): void {
  const context = `${operation.query}\n${JSON.stringify(operation.variables)}\n`;
  const { status: _, ...expected } = direct;
  const { status, ...actual } = through;
  const isAlone = sent.length === 0;
  if (isAlone && direct.data === undefined) {
    const refused = { data: undefined, errors: messagesOf(direct) };
    expect({ data: actual.data, errors: messagesOf(through) }, context).toEqual(refused);
    return;
  }
  expect(actual, context).toEqual(isAlone ? { ...expected, extensions: undefined } : expected);
  expect(status, context).toBe(200);
}

function messagesOf({ errors = [] }: ExactAnswer): unknown[] {
  return errors.map((error) => (JSON.parse(error) as { message: unknown }).message);
}

/** Limits are tested elsewhere. */
const GENEROUS = {
  mutations: 'all',
  maxDepth: 1_000,
  maxAliases: 100_000,
  maxTokens: 1_000_000,
} as const;

function exactAnswer(text: string, status = 200): ExactAnswer {
  const { data, errors, extensions } = exactly(text) as {
    readonly data?: unknown;
    readonly errors?: readonly object[] | null;
    readonly extensions?: unknown;
  };
  return {
    status,
    data: JSON.stringify(data),
    errors: errors === undefined ? undefined : (errors ?? []).map(withoutLocations),
    extensions: JSON.stringify(extensions),
  };
}

/** The order of an error's members has no meaning. */
function withoutLocations(error: object): string {
  const members = Object.entries(error).filter(([name]) => name !== 'locations');
  return JSON.stringify(Object.fromEntries(members.toSorted(([a], [b]) => (a < b ? -1 : 1))));
}

/** Returns a JSON text without white space and with plain escapes; its numbers keep their digits. */
export function canonical(text: string): string {
  return JSON.stringify(exactly(text));
}

/** Reads JSON with numbers that `JSON.stringify` writes as they stand. */
function exactly(text: string): unknown {
  const { parse, rawJSON: raw } = JSON as unknown as ExactJson;
  return parse(text, (_, value, { source }) => (typeof value === 'number' ? raw(source) : value));
}

/** What Node has and TypeScript does not know yet. */
interface ExactJson {
  parse(
    text: string,
    revive: (key: string, value: unknown, context: { readonly source: string }) => unknown,
  ): unknown;
  rawJSON(text: string): object;
}
