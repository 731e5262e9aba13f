import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock, type Clock } from '../../../src/clock.ts';
import { startSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/sandbox.ts';
import type { TokenStore } from '../../../src/tokens/store/token-store.ts';
import { startGateway, type TestGateway, type TestGatewayOptions } from '../gateway/gateway.ts';

/** One request to /graphql, as it arrived. */
export interface Received {
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
export interface GraphQLAnswer {
  data: Record<string, AnsweredPage>;
  errors?: unknown;
}

export interface AnsweredPage {
  items: Record<string, unknown>[];
  pageInfo: Record<string, unknown>;
}

/** How one request to /graphql is answered. */
export type Reply = (
  response: ServerResponse,
  received: Received,
  sandbox: Sandbox,
) => void | Promise<void>;

/** A sandbox whose answers of /graphql a test can replace. */
export interface FakeUpstream extends AsyncDisposable {
  readonly url: string;
  readonly tokenLink: string;
  /** Issues the tokens, and makes the honest answers. */
  readonly sandbox: Sandbox;
  /** Requests to /graphql, in the order of their arrival. */
  readonly received: readonly Received[];
  /** `User-Agent` and `Api-User-Agent` of every request to anything else. */
  readonly otherAgents: readonly unknown[];
  /** Sets the replies to the next requests to /graphql, one each; the last one stays. */
  answer(...replies: [Reply, ...Reply[]]): void;
  /** Resolves when this number of requests to /graphql has arrived. */
  arrived(count: number): Promise<void>;
}

export interface FakeUpstreamOptions extends SandboxOptions {
  /** The path of the service. */
  base?: string;
}

/** Starts a fake upstream. All answers are honest until `answer` replaces them. */
export async function startFakeUpstream({
  base = '',
  ...options
}: FakeUpstreamOptions = {}): Promise<FakeUpstream> {
  const sandbox = await startSandbox(options);
  const received: Received[] = [];
  const otherAgents: unknown[] = [];
  const arrivals = new EventEmitter().setMaxListeners(0);
  let replies: readonly Reply[] = [honest];

  // Longer than the pauses of tests: a connection that is just being closed would be another fault.
  const server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
    respond(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${base}`;

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, headers, socket: connection } = request;
    const body = await textOf(request);
    if (!request.url?.startsWith(`${base}/`)) return respondWith(response, 404, '{}');
    const path = request.url.slice(base.length);
    if (path !== '/graphql') {
      otherAgents.push(headers['user-agent'], headers['api-user-agent']);
      return passOn(response, `${sandbox.url}${path}`, request, body);
    }
    const over = once(response, 'close').then(() =>
      response.writableFinished ? ('answered' as const) : ('cut' as const),
    );
    const token = (headers.authorization ?? '').replace(/^Bearer /, '');
    const one: Received = { method, headers, token, body, connection, over };
    const reply = replies[0]!;
    if (replies.length > 1) replies = replies.slice(1);
    received.push(one);
    arrivals.emit('one');
    await reply(response, one, sandbox);
  }

  return {
    url,
    tokenLink: url + new URL(sandbox.tokenLink).pathname,
    sandbox,
    received,
    otherAgents,
    answer: (...next) => {
      replies = next;
    },
    arrived: async (count) => {
      while (received.length < count) await once(arrivals, 'one');
    },
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      await sandbox.close();
    },
  };
}

export interface GatewayOverFake extends TestGateway {
  readonly upstream: FakeUpstream;
  /** The waits before each repeated request, ms. */
  readonly waits: readonly number[];
}

/**
 * A gateway over a fake upstream. Its set was imported and refreshed once. Repeated requests are sent without a wait.
 */
export async function startGatewayOverFake(
  upstreamOptions: FakeUpstreamOptions = {},
  options: TestGatewayOptions = {},
): Promise<GatewayOverFake> {
  const upstream = await startFakeUpstream(upstreamOptions);
  const waits: number[] = [];
  const started = await startGateway(upstream, { clock: impatientClock(waits), ...options });
  await refreshedOnce(started.store);
  return {
    ...started,
    upstream,
    waits,
    [Symbol.asyncDispose]: async () => {
      await started[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

/** No `expect.poll`: it works only inside tests, and hundreds of tests begin with this. */
async function refreshedOnce(store: TokenStore): Promise<void> {
  const start = performance.now();
  while ((await store.read())?.generation !== 2) {
    assert.ok(performance.now() - start < 10_000, 'The token set was not imported and refreshed.');
    await delay(2);
  }
}

/** Retries wait less than this, and refreshes of tokens longer. */
const LONG_MS = 15_000;

/** A clock with which repeated requests do not wait. @param waits receives their waits */
export function impatientClock(waits: number[] = []): Clock {
  return {
    ...systemClock,
    sleep: async (ms, signal) => {
      if (ms >= LONG_MS) return systemClock.sleep(ms, signal);
      signal?.throwIfAborted();
      waits.push(ms);
    },
  };
}

/** Answers as the sandbox does. */
export const honest: Reply = (response, { headers, body }, sandbox) =>
  passOn(response, `${sandbox.url}/graphql`, { method: 'POST', headers }, body);

/** Answers as the sandbox does, with a changed body. */
export function altered(change: (answer: GraphQLAnswer) => void): Reply {
  return async (response, { headers, body }, sandbox) => {
    const answer = await ask(`${sandbox.url}/graphql`, { method: 'POST', headers }, body);
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

/** The connection breaks before a byte of the answer. */
export const cut: Reply = (response) => void response.destroy();

/** The connection breaks when some of the answer has arrived. */
export const cutInBody: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"data":{"persons":', () => response.destroy());
};

export const silence: Reply = () => {};

/** Headers and the beginning of a body, and nothing more. */
export const unfinished: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.write('{"data":');
};

/** An endless body, one byte at a time. */
export const trickle: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const drops = setInterval(() => response.write(' '), 5);
  response.once('close', () => clearInterval(drops));
};

/** Endless interim answers, and no final one. */
export const hints: Reply = (response) => {
  const more = setInterval(() => response.writeEarlyHints({ link: '</x>; rel=preload' }), 5);
  response.once('close', () => clearInterval(more));
};

/** An endless body, as fast as it is read. */
export const flood: Reply = (response) => {
  const megabyte = Buffer.alloc(1024 * 1024, ' ');
  const pour = () => {
    while (!response.destroyed && response.write(megabyte));
  };
  response.writeHead(200, { 'content-type': 'application/json' }).on('drain', pour);
  pour();
};

/** Answers only after the gate is open. */
export function after(gate: Promise<unknown>, reply: Reply): Reply {
  return async (...exchange) => {
    await gate;
    await reply(...exchange);
  };
}

interface Sent {
  method?: string | undefined;
  headers: IncomingHttpHeaders;
}

function ask(url: string, { method = 'GET', headers }: Sent, body: string): Promise<Response> {
  const { authorization = '', 'content-type': contentType = '' } = headers;
  return fetch(url, {
    method,
    headers: { authorization, 'content-type': contentType },
    ...(body !== '' && { body }),
  });
}

async function passOn(response: ServerResponse, url: string, sent: Sent, body: string) {
  const answer = await ask(url, sent, body);
  respondWith(response, answer.status, await answer.text());
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
