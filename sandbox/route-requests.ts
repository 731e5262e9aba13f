import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Habits } from './habits.ts';

export interface Answer {
  status: number;
  /** Sent as JSON. Without it and without a text, the answer has no body. */
  body?: unknown;
  /** Sent as it is, instead of `body`. */
  text?: string | Uint8Array;
  headers?: Record<string, string>;
  /** Whether the connection is cut in the middle of the body. */
  halved?: boolean;
  /** Sends all of the answer by itself; nothing else of it is used. */
  write?: (response: ServerResponse) => void | Promise<void>;
  /** Called once the whole answer has been handed to the socket. */
  whenSent?: () => void;
}

export interface Route {
  name: RouteName;
  method: 'GET' | 'POST';
  /** `gone` is aborted when the client has left, and once the answer is sent. */
  answer: (request: IncomingMessage, gone: AbortSignal) => MaybeAnswer | Promise<MaybeAnswer>;
}

/** Without an answer, the connection is closed. */
type MaybeAnswer = Answer | undefined;

type RouteName = 'tokenLink' | 'authCheck' | 'oauthToken' | 'graphql' | 'account' | 'unknown';

export interface Stats {
  /** Requests that arrived, whatever their outcome. */
  requests: Record<RouteName, number>;
  /** Refresh tokens exchanged. */
  refreshes: number;
  /** GraphQL operations executed. */
  graphql: number;
  /** Requests to /graphql not yet answered. */
  inFlight: number;
  maxInFlight: number;
  /** Of the latest request to /graphql. */
  lastHeaders: IncomingHttpHeaders | undefined;
  /** The `X-Request-Id` of the latest answer, if answers have one. */
  lastRequestId: string | undefined;
}

export function createStats(): Stats {
  return {
    requests: { tokenLink: 0, authCheck: 0, oauthToken: 0, graphql: 0, account: 0, unknown: 0 },
    refreshes: 0,
    graphql: 0,
    inFlight: 0,
    maxInFlight: 0,
    lastHeaders: undefined,
    lastRequestId: undefined,
  };
}

/** Answers each request by its route, and counts it. */
export function routeRequests(
  routes: ReadonlyMap<string, Route>,
  stats: Stats,
  { requestIds = false, requireUserAgent = false }: Habits,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    const route = routes.get(pathOf(request));
    stats.requests[route?.name ?? 'unknown'] += 1;
    if (requestIds) {
      stats.lastRequestId = randomUUID();
      response.setHeader('x-request-id', stats.lastRequestId);
    }
    if (requireUserAgent && route?.name !== 'account' && !hasContact(request)) {
      send(response, badUserAgent);
      return;
    }
    await respond(route, request, response);
  };
}

/** Whether the User-Agent names a program and a contact. */
function hasContact({ headers }: IncomingMessage): boolean {
  return /^[^\s/()]+\/[^\s()]+ \([^()]*\S[^()]*\)$/.test(headers['user-agent'] ?? '');
}

const badUserAgent: Answer = {
  status: 400,
  body: {
    errors: [
      { type: 'bad_user_agent', message: 'User-Agent must have the form name/version (contact).' },
    ],
  },
};

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?', 1)[0] ?? '';
}

async function respond(
  route: Route | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    const answer = await answerOf(route, request, gone.signal);
    if (gone.signal.aborted) return;
    if (answer === undefined) request.socket.destroy();
    else if (answer.write) await answer.write(response);
    else send(response, answer);
  } catch (error) {
    // The client has left: an interrupted wait or upload is not a failure.
    if (gone.signal.aborted || request.socket.destroyed) return;
    send(response, problem(500, error instanceof Error ? error.message : String(error)));
  }
}

function answerOf(
  route: Route | undefined,
  request: IncomingMessage,
  gone: AbortSignal,
): MaybeAnswer | Promise<MaybeAnswer> {
  if (route === undefined) return problem(404, 'There is nothing at this address.');
  if (request.method !== route.method) {
    return {
      ...problem(405, `Only ${route.method} is answered here.`),
      headers: { allow: route.method },
    };
  }
  return route.answer(request, gone);
}

/** Returns the body as text; undefined if it is larger than the limit in bytes. */
export async function readBody(
  request: IncomingMessage,
  limit: number,
): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  // The rest of a larger body is read and dropped: a client that still writes would not see the answer.
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= limit) chunks.push(chunk);
  }
  return size <= limit ? Buffer.concat(chunks).toString('utf8') : undefined;
}

/** The media type that the request declares, without its parameters. */
export function contentType(request: IncomingMessage): string {
  return (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

export function send(response: ServerResponse, answer: Answer): void {
  const { status, body, headers = {}, halved = false, whenSent } = answer;
  const text = answer.text ?? (body === undefined ? undefined : JSON.stringify(body));
  const bytes = Buffer.from(text ?? '');
  if (text !== undefined) {
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.setHeader('content-length', bytes.length);
  }
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.writeHead(status);
  if (halved) {
    const half = bytes.subarray(0, Math.floor(bytes.length / 2));
    response.write(half, () => response.destroy());
    return;
  }
  if (bytes.length > 0) response.write(bytes, (error) => !error && whenSent?.());
  response.end();
}

/** A failure whose body the interface does not show. It has the shape of a GraphQL error, on every path. */
export function problem(status: number, message: string): Answer {
  return { status, body: { errors: [{ message }] } };
}
