import { printSchema, type GraphQLSchema } from 'graphql';
import { expect, onTestFinished } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { wrote } from '../support/gateway/written.ts';
import { canonical, elementsOf, membersOf, printExactly } from './exact-json.ts';
import { serviceOf, type ReceivedOperation, type Service, type ServiceOptions } from './service.ts';

/** An answer as canonical text, without the locations of its errors. */
export interface ExactAnswer {
  readonly status: number;
  /** Undefined if the answer has no such member. */
  readonly data: string | undefined;
  /** Empty if the member is null, too. */
  readonly errors: readonly string[] | undefined;
  readonly extensions: string | undefined;
}

/** What a caller sends. */
export interface SentOperation {
  readonly query: string;
  readonly variables?: Record<string, unknown> | undefined;
  readonly operationName?: string | undefined;
}

/** A service, and the gateway in front of it, each on a socket. */
export interface SideBySide extends AsyncDisposable {
  readonly gateway: GatewayOverService;
  direct(operation: SentOperation): Promise<ExactAnswer>;
  through(operation: SentOperation): Promise<ExactAnswer>;
  /** Sends an operation to both. `sent`: the requests that the gateway sent to the service. */
  both(operation: SentOperation): Promise<Compared>;
  /** Sends an operation to both, and fails unless the gateway answers as the service does. */
  expectSame(operation: SentOperation): Promise<Compared>;
}

export interface Compared {
  readonly direct: ExactAnswer;
  readonly through: ExactAnswer;
  readonly sent: readonly ReceivedOperation[];
  /** The bodies of `sent`, byte for byte. */
  readonly sentText: readonly string[];
}

export interface SideBySideOptions {
  /** The schema of the service, and the snapshot of the gateway. */
  readonly schema: GraphQLSchema;
  /** The SDL of the gateway's snapshot. Default: the schema, printed. */
  readonly snapshot?: string;
  /** Default: a service that answers with graphql-js. */
  readonly service?: Service | Omit<ServiceOptions, 'schema'>;
  readonly config?: TestGatewayOptions['config'];
}

export async function startSideBySide(options: SideBySideOptions): Promise<SideBySide> {
  const { schema, snapshot = printSchema(schema), service: serviceOption = {} } = options;
  const service =
    typeof serviceOption === 'function' ? serviceOption : serviceOf({ schema, ...serviceOption });
  const gateway = await startGatewayOverService(
    { persons: 0 },
    { snapshot, config: { ...GENEROUS, ...options.config } },
  );
  gateway.service.answer(async (response, { body }) => {
    const text = await service(JSON.parse(body) as ReceivedOperation);
    response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  });
  const listening = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  const { received } = gateway.service;

  const direct = (operation: SentOperation) => post(gateway.service.url, operation);
  const through = (operation: SentOperation) => post(listening.url, operation);
  const both = async (operation: SentOperation): Promise<Compared> => {
    const before = received.length;
    const answer = await through(operation);
    const sentText = received.slice(before).map(({ body }) => body);
    const sent = sentText.map((body) => JSON.parse(body) as ReceivedOperation);
    return { direct: await direct(operation), through: answer, sent, sentText };
  };
  return {
    gateway,
    direct,
    through,
    both,
    expectSame: async (operation) => {
      const compared = await both(operation);
      expectSameAnswer(compared, operation);
      return compared;
    },
    [Symbol.asyncDispose]: async () => {
      await listening.close();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

/** Starts both for one test. */
export async function sideBySide(options: SideBySideOptions): Promise<SideBySide> {
  const world = await startSideBySide(options);
  onTestFinished(() => world[Symbol.asyncDispose]());
  return world;
}

/**
 * Answers that the gateway makes itself cannot have the service's `extensions`. Where it refuses what the service
 * refuses, it adds a code, and the messages are the same.
 */
function expectSameAnswer({ direct, through, sent }: Compared, operation: SentOperation): void {
  const context = `${operation.query}\n${printExactly(operation.variables)}\n`;
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

async function post(url: string, operation: SentOperation): Promise<ExactAnswer> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: printExactly(operation),
  });
  const text = wrote(await response.text());
  const members = new Map(membersOf(canonical(text)));
  const errors = members.get('errors')?.replace(/^null$/, '[]');
  return {
    status: response.status,
    data: members.get('data'),
    errors: errors === undefined ? undefined : elementsOf(errors).map(withoutLocations),
    extensions: members.get('extensions'),
  };
}

/** The order of an error's members has no meaning. */
function withoutLocations(error: string): string {
  const members = membersOf(error).filter(([name]) => name !== 'locations');
  const printed = members.map(([name, value]) => `${JSON.stringify(name)}:${value}`);
  return `{${printed.toSorted().join(',')}}`;
}
