import { EventEmitter, once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import {
  buildSchema,
  graphql,
  parse,
  getOperationAST,
  Kind,
  type FieldNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { startService, type Service, type ServiceOptions } from '../../service/service.ts';

/** One request to /graphql or /auth_check, as it arrived. */
export interface Received {
  readonly path: string;
  readonly method: string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** The bearer token. */
  readonly token: string;
  readonly body: string;
  readonly connection: Socket;
  /** Resolves when the exchange is over: answered completely, or ended by one side. */
  readonly over: Promise<'answered' | 'cut'>;
}

/** An answer with lists, before a test changes it. */
interface GraphQLAnswer {
  data: Record<string, AnsweredPage>;
  errors?: unknown;
}

export interface AnsweredPage {
  items: Record<string, unknown>[];
  pageInfo: Record<string, unknown>;
}

/** How one request to /graphql or /auth_check is answered. */
export type Reply = (
  response: ServerResponse,
  received: Received,
  sandbox: Service,
) => void | Promise<void>;

/**
 * A sandbox whose answers of /graphql and /auth_check a test can replace. Those of /oauth/token are replaced by
 * `tokenAnswers`.
 */
export interface FakeUpstream
  extends
    AsyncDisposable,
    Pick<Service, 'url' | 'tokenLink' | 'exchanges' | 'tokenAnswers' | 'makeNewSet'> {
  /** Issues the tokens, and makes the honest answers. */
  readonly sandbox: Service;
  /** Requests to /graphql, in the order of their arrival. */
  readonly received: readonly Received[];
  /** `User-Agent` and `Api-User-Agent` of every request to anything else. */
  readonly otherAgents: readonly unknown[];
  /** Sets the replies to the next requests to /graphql, one each; the last one stays. */
  answer(...replies: [Reply, ...Reply[]]): void;
  /** Sets the reply to every request to /auth_check. */
  answerChecks(reply: Reply): void;
  /** Makes all access tokens so far expire. */
  expire(): void;
  /** Connections are refused. */
  down(): Promise<void>;
  up(): Promise<void>;
  /** Resolves when this number of requests to /graphql has arrived. */
  arrived(count: number): Promise<void>;
}

export interface FakeUpstreamOptions extends ServiceOptions {
  /** The path of the service. */
  base?: string;
}

/** Starts a fake upstream. All answers are honest until `answer` replaces them. */
export async function startFakeUpstream({
  base = '',
  ...options
}: FakeUpstreamOptions = {}): Promise<FakeUpstream> {
  const { now = Date.now, expiresIn = 86_400 } = options;
  let ahead = 0;
  const sandbox = await startService({ ...options, now: () => now() + ahead });
  const received: Received[] = [];
  const otherAgents: unknown[] = [];
  const arrivals = new EventEmitter().setMaxListeners(0);
  let replies: readonly Reply[] = [honest];
  let checkReply = honest;

  // Longer than the pauses of tests: a connection that is just being closed would be another fault.
  const server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
    respond(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  const listen = (at: number) =>
    new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}${base}`;
  const linkAt = (link: string) => url + new URL(link).pathname;

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, headers, socket: connection } = request;
    if (!request.url?.startsWith(`${base}/`)) return respondWith(response, 404, '{}');
    const path = request.url.slice(base.length);
    if (path !== '/graphql') otherAgents.push(headers['user-agent'], headers['api-user-agent']);
    if (path !== '/graphql' && path !== '/auth_check') {
      request.url = path;
      return sandbox.answer(request, response);
    }
    const body = await textOf(request);
    const over = once(response, 'close').then(() =>
      response.writableFinished ? ('answered' as const) : ('cut' as const),
    );
    const token = (headers.authorization ?? '').replace(/^Bearer /, '');
    const arrival: Received = { path, method, headers, token, body, connection, over };
    if (path === '/auth_check') return checkReply(response, arrival, sandbox);
    const reply = replies[0]!;
    if (replies.length > 1) replies = replies.slice(1);
    received.push(arrival);
    arrivals.emit('one');
    await reply(response, arrival, sandbox);
  }

  return {
    url,
    get tokenLink() {
      return linkAt(sandbox.tokenLink);
    },
    sandbox,
    exchanges: sandbox.exchanges,
    tokenAnswers: sandbox.tokenAnswers,
    makeNewSet: () => linkAt(sandbox.makeNewSet()),
    received,
    otherAgents,
    answer: (...next) => {
      replies = next;
    },
    answerChecks: (reply) => void (checkReply = reply),
    expire: () => void (ahead += expiresIn * 1000),
    down,
    up: () => listen(port),
    arrived: async (count) => {
      while (received.length < count) await once(arrivals, 'one');
    },
    [Symbol.asyncDispose]: async () => {
      await down();
      await sandbox.close();
    },
  };

  async function down(): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }
}

/** Answers as the sandbox does. */
export const honest: Reply = async (
  response,
  { path: url, method, headers, body, connection },
  sandbox,
) => {
  if (response.destroyed) return;
  const request = Object.assign(Readable.from([Buffer.from(body)]), { url, method, headers });
  await sandbox.answer(Object.assign(request, { socket: connection }) as IncomingMessage, response);
};

/** Answers as the sandbox does, with a changed body. */
export function altered(change: (answer: GraphQLAnswer) => void): Reply {
  return async (response, { headers, body }, sandbox) => {
    const { authorization = '', 'content-type': contentType = '' } = headers;
    const sent = { method: 'POST', headers: { authorization, 'content-type': contentType }, body };
    const answer = await fetch(`${sandbox.url}/graphql`, sent);
    const content = (await answer.json()) as GraphQLAnswer;
    change(content);
    respondWith(response, answer.status, JSON.stringify(content));
  };
}

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Reply {
  return (response) => respondWith(response, status, JSON.stringify(body), headers);
}

export function text(body: string, status = 200, headers: Record<string, string> = {}): Reply {
  return (response) =>
    respondWith(response, status, body, { 'content-type': 'text/html', ...headers });
}

/** The error body of a refused access token (interface, 2.2). */
export function refusal(detail: string, status = 401): Reply {
  return json({ type: 'invalid_token', detail }, status);
}

/** Answers only after the gate is open. */
export function after(gate: Promise<unknown>, reply: Reply): Reply {
  return async (...exchange) => {
    await gate;
    await reply(...exchange);
  };
}

function respondWith(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Record<string, string> = {},
): void {
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** Answers introspection as a service with this schema does. */
export function introspected(sdl: string): Reply {
  const schema = buildSchema(sdl);
  return async (...exchange) => {
    const { query } = JSON.parse(exchange[1].body) as { query: string };
    await json(await graphql({ schema, source: query }))(...exchange);
  };
}

/** Does the same as a service of 2016, whose introspection refuses everything added since. */
export function introspectedAsIn2016(sdl: string): Reply {
  return async (...exchange) => {
    if (ADDED_SINCE.test(exchange[1].body)) {
      return json({ errors: [{ message: 'Cannot query that.' }] }, 400)(...exchange);
    }
    await introspected(sdl)(...exchange);
  };
}

const ADDED_SINCE =
  /specifiedByURL|isOneOf|isRepeatable|(args|inputFields)\(includeDeprecated|__schema \{\\n\s*description/;

/** Does the same as current graphql-java services, which allow each of these fields once in a document. */
export function introspectedInGoodFaith(sdl: string): Reply {
  return async (...exchange) => {
    const { query } = JSON.parse(exchange[1].body) as { query: string };
    const often = [
      '__schema',
      '__type',
      'fields',
      'inputFields',
      'interfaces',
      'possibleTypes',
    ].find((field) => (query.match(new RegExp(`(?<!\\w)${field}(?!\\w)`, 'g')) ?? []).length > 1);
    if (often === undefined) return introspected(sdl)(...exchange);
    const message = `This request is not asking for introspection in good faith - ${often} is present too often!`;
    await json({ errors: [{ message, extensions: { classification: 'BadFaithIntrospection' } }] })(
      ...exchange,
    );
  };
}

/** A limit that a test can change while lists are read, and what happened to the requests. */
interface Costs {
  /** The highest cost that is accepted. */
  max: number;
  /** How a request above it is answered. */
  refuse: (cost: number, max: number) => Reply;
  /** How all other requests are answered. */
  answer: Reply;
  /** `first` of each request that was accepted; null where it had none. */
  readonly accepted: (number | null)[];
  readonly refused: (number | null)[];
}

/**
 * Refuses requests that cost too much before it executes them, as services do: a field costs 1, and each field
 * of a record 1 for each record of the page.
 */
export function costlyService(
  max: number,
  refuse: Costs['refuse'] = graphqlJava,
): Costs & { readonly reply: Reply } {
  const costs: Costs & { reply: Reply } = {
    max,
    refuse,
    answer: honest,
    accepted: [],
    refused: [],
    reply: (response, received, sandbox) => {
      const { cost, first } = costOf(received);
      if (cost <= costs.max) {
        costs.accepted.push(first);
        return costs.answer(response, received, sandbox);
      }
      costs.refused.push(first);
      return costs.refuse(cost, costs.max)(response, received, sandbox);
    },
  };
  return costs;
}

/** The message of graphql-java. */
const graphqlJava: Costs['refuse'] = (cost, max) =>
  json({ errors: [{ message: `maximum query complexity exceeded ${cost} > ${max}` }] });

const PAGE = 50;

/** What a request costs, and the `first` of its outermost list. */
function costOf({ body }: Received): { cost: number; first: number | null } {
  const { query, variables = {} } = JSON.parse(body) as {
    query: string;
    variables?: Record<string, unknown>;
  };
  const document = parse(query);
  const fragments = new Map(
    document.definitions.flatMap((definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION
        ? [[definition.name.value, definition.selectionSet]]
        : [],
    ),
  );
  let outermost: number | null | undefined;
  const operation: OperationDefinitionNode = getOperationAST(document)!;
  return { cost: costOfAll(operation.selectionSet), first: outermost ?? null };

  function costOfAll({ selections }: SelectionSetNode): number {
    return selections.reduce((sum, selection) => {
      if (selection.kind === Kind.FIELD) return sum + costOfField(selection);
      const below =
        selection.kind === Kind.INLINE_FRAGMENT
          ? selection.selectionSet
          : fragments.get(selection.name.value)!;
      return sum + costOfAll(below);
    }, 0);
  }

  function costOfField({ arguments: args = [], selectionSet }: FieldNode): number {
    if (!selectionSet) return 1;
    const items = selectionSet.selections.flatMap((selection) =>
      selection.kind === Kind.FIELD && selection.name.value === 'items'
        ? [selection.selectionSet!]
        : [],
    );
    if (items.length === 0) return 1 + costOfAll(selectionSet);
    const first = args.find(({ name }) => name.value === 'first')?.value;
    const pageSize =
      first?.kind === Kind.VARIABLE
        ? (variables[first.name.value] as number | undefined)
        : first?.kind === Kind.INT
          ? Number(first.value)
          : undefined;
    outermost ??= pageSize ?? null;
    const of = items.reduce((sum, item) => sum + costOfAll(item), 0);
    return 1 + Math.min(pageSize ?? PAGE, PAGE) * of;
  }
}
