import { validateHeaderValue, type IncomingMessage, type ServerResponse } from 'node:http';
import { finished } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Request as YogaRequest } from '@whatwg-node/fetch';
import { sendNodeResponse } from '@whatwg-node/server';
import type { GraphQLSchema } from 'graphql';
import { type Plugin, type FetchAPI, createYoga } from 'graphql-yoga';
import type { Clock } from '../clock.ts';
import type { ErrorPolicy } from './error-policy.ts';
import {
  Exchange,
  type Reply,
  type Stage,
  type Stages,
  isPiece,
  isStream,
  type Body,
  type NodeMessages,
  type Piece,
  type ExchangeTelemetry,
} from './exchange.ts';
import { STALL_MS } from './listen.ts';

/** What answers need from the handler. */
interface AnswerParts {
  /** The one of Yoga, whose responses it writes without reading them as streams. */
  readonly fetchAPI: FetchAPI;
  readonly errors: Pick<ErrorPolicy, 'refuse' | 'fail' | 'mask'>;
  readonly clock: Clock;
  /** Whether a plugin of the operator sees responses. */
  readonly isSeen: boolean;
  readonly endOfTurn: () => Promise<void>;
  /** Called when a stream was read to its end through `fetch`. */
  readonly onEnd?: () => void;
}

/** A request on its way through the plugins of Yoga, and the methods that answer it. */
class Conversation {
  readonly exchange: Exchange;
  readonly parts: AnswerParts;
  /** Whether its answer is a stream. */
  streams = false;
  /** Whether plugins of the operator may read the request until it is answered. */
  isShared = false;
  /** The response that the gateway made; undefined before. */
  response: Response | undefined = undefined;

  constructor(exchange: Exchange, parts: AnswerParts) {
    this.exchange = exchange;
    this.parts = parts;
  }

  async respond(reply: Reply): Promise<Response> {
    const { exchange, parts } = this;
    // The request may be large, and earlier answers of the connection may come first.
    exchange.dropParams();
    // A refusal for lack of memory must not wait for the other replies of its turn.
    if (exchange.isHungUp) {
      this.response = new parts.fetchAPI.Response(null, { status: reply.status });
      return this.response;
    }
    this.streams = isStream(reply.body);
    // A stream may last for minutes.
    if (this.streams) {
      if (!this.isShared) exchange.dropHead();
    } else if (exchange.node) await parts.endOfTurn();
    try {
      const response = responseOf(reply, this);
      // Each await costs a turn of the microtasks.
      this.response = response instanceof Promise ? await response : response;
    } catch (error) {
      this.streams = false;
      this.response = await responseOf(parts.errors.fail(exchange, error), this);
    }
    return this.response;
  }

  /** Answers an error that a stage threw. */
  async refuse(error: unknown): Promise<Response> {
    const { exchange } = this;
    const { errors } = this.parts;
    let reply: Reply;
    try {
      reply = await errors.refuse(exchange, error);
    } catch (thrown) {
      reply = errors.fail(exchange, thrown);
    }
    return this.respond(reply);
  }

  /**
   * Ends an answer that has begun. Logs its failure, because nothing else could report it.
   *
   * @returns what a reader through `fetch` gets instead of the error
   */
  cutOff(error: unknown): Error {
    const { exchange } = this;
    const failure = exchange.hasLeft ? error : new Error(CUT_OFF, { cause: error });
    const masked = this.parts.errors.mask(failure, exchange);
    exchange.cutOff();
    return masked;
  }
}

const CUT_OFF = 'An answer was cut off, because the rest of it could not be written.';

/** The context that Yoga passes to every hook that belongs to a request, and to resolvers. */
interface ServerContext {
  /** Yoga copies the contexts of requests through `fetch`, with their symbols. */
  readonly [CONVERSATION]: Conversation;
}

const CONVERSATION = Symbol('conversation');

export type GatewayPlugin = Plugin<object, ServerContext>;

/** @throws Error if a plugin has replaced the context of the request by one that was not made from it */
export function conversationIn(context: object): Conversation {
  const { [CONVERSATION]: conversation } = context as Partial<ServerContext>;
  if (!conversation) throw new Error('A plugin has replaced the context of a request.');
  return conversation;
}

/**
 * Makes a plugin of stages, one after the other: they run before anything of the request is parsed by Yoga or by other
 * plugins. One plugin for several, because each hook of Yoga has its cost.
 */
export function plugin(...stages: Stages): GatewayPlugin {
  const stage = inTurn(stages);
  return {
    onRequest: ({ request, serverContext, endResponse }) => {
      const { [CONVERSATION]: conversation } = serverContext;
      // As Yoga would do it later, for resolvers.
      conversation.exchange.context ??= Object.assign(serverContext, { request });
      let reply: ReturnType<Stage>;
      try {
        reply = stage(conversation.exchange);
      } catch (error) {
        return conversation.refuse(error).then(endResponse);
      }
      if (reply === undefined) return undefined;
      if (!(reply instanceof Promise)) return conversation.respond(reply).then(endResponse);
      return reply.then(
        (later) => later && conversation.respond(later).then(endResponse),
        (error: unknown) => conversation.refuse(error).then(endResponse),
      );
    },
  };
}

/** Combines stages into one. */
export function inTurn(all: Stages): Stage {
  const stages = all.filter((stage) => stage !== undefined);
  const runFrom = (first: number, exchange: Exchange): ReturnType<Stage> => {
    for (let at = first; at < stages.length; at += 1) {
      const reply = stages[at]!(exchange);
      if (reply instanceof Promise) {
        return reply.then((later) => later ?? runFrom(at + 1, exchange));
      }
      if (reply) return reply;
    }
    return undefined;
  };
  return (exchange) => runFrom(0, exchange);
}

/** The size up to which bytes are passed on as a string. */
const SMALL = 16 * 1024;
/** The size up to which pieces are joined, bytes. */
const JOINED = 64 * 1024;
/** The bytes after which other requests get a turn: one fast reader would otherwise occupy the event loop. */
const TURN = 128 * 1024;
/** The longest time from the refusal of a body to the end of its connection, ms. */
const LINGER_MS = 1_000;

/**
 * Makes the response of a reply, which Yoga writes over a socket as fast as the caller reads. The first part of a stream
 * over a socket is awaited, so that its failure can still be refused.
 *
 * @throws whatever is wrong with the reply, before anything of it is sent
 */
function responseOf(reply: Reply, conversation: Conversation): Response | Promise<Response> {
  const { exchange, parts } = conversation;
  const { Response: YogaResponse } = parts.fetchAPI;
  const { node } = exchange;
  // Plugins may also wrap the handler that goes through the steps of Yoga.
  const isSeen = parts.isSeen || conversation.isShared;
  const { status, body = '' } = reply;
  const headers = headersOf(reply, exchange);
  // Node would throw when it is too late for another answer, and not every `Response` throws.
  for (const name in headers) validateHeaderValue(name, headers[name]!);
  if (!node) {
    const content = isStream(body) ? webStream(body, conversation) : joined(body);
    return new Response(hasNoBody(status) ? null : content, { status, headers });
  }
  if (isStream(body)) {
    return begun(body, node).then((rest) =>
      // An empty response is not written: the caller has left.
      rest ? written(guarded(rest, node, conversation)) : written(null),
    );
  }
  const length = lengthOf(body);
  if (!hasNoBody(status)) headers['content-length'] = String(length);
  if (headers['connection'] === 'close' && !node.req.complete) {
    return written(lingering(body, node, parts.clock));
  }
  if (length > JOINED) return written(isPiece(body) ? body : inTurns(partsOf(body)));
  const response: Written = written(isSeen && length > 0 ? bytesOf(body, length) : null);
  response[WHOLE] = { body, length, headers: isSeen ? response.headers : headers };
  return response;

  function written(made: string | Uint8Array | AsyncIterable<Piece> | null): Response {
    return new YogaResponse(made as BodyInit | null, { status, headers });
  }
}

/** A response over a socket, with the body that is written at once if it is complete. */
interface Written extends Response {
  [WHOLE]?: {
    readonly body: Body;
    readonly length: number;
    /** The headers of the response if a plugin sees it, because plugins may change them. */
    readonly headers: Headers | Record<string, string>;
  };
}

const WHOLE = Symbol('whole');

/**
 * Sends a response over a socket, as Yoga does. Yoga writes the body and then its end, which are two parts of one write
 * for Node, and cost much more than one.
 *
 * @throws whatever is wrong with the response
 */
function send(response: Written, { req, res }: NodeMessages): Promise<void> | undefined {
  const { [WHOLE]: whole } = response;
  if (!whole || res.destroyed || res.writableEnded) {
    return Promise.resolve(sendNodeResponse(response, res, req, true));
  }
  const { body, length, headers } = whole;
  if (isSet(headers)) res.setHeaders(headers).writeHead(response.status, response.statusText);
  else res.writeHead(response.status, headers);
  // Node joins a string with the headers. A buffer would be a second part of the write, which costs more.
  if (length <= SMALL && !isPiece(body)) res.end(latin1Of(body), 'latin1');
  else res.end(bytesOf(body, length));
  return undefined;
}

function isSet(headers: Headers | Record<string, string>): headers is Headers {
  return typeof headers.get === 'function';
}

/** A string with a character for each byte, which Node writes fastest. */
function latin1Of(pieces: readonly Piece[]): string {
  let all = '';
  for (const piece of pieces) {
    const isSame = typeof piece === 'string' && Buffer.byteLength(piece) === piece.length;
    all += isSame ? piece : asBuffer(piece).toString('latin1');
  }
  return all;
}

/** Joins the headers of the reply and of the exchange. */
function headersOf({ headers }: Reply, { replyHeaders }: Exchange): Record<string, string> {
  const all = { ...headers, ...replyHeaders };
  // Only the writer of a body knows its framing, and two framings at once confuse proxies (RFC 9112, 6.1).
  delete all['transfer-encoding'];
  delete all['content-length'];
  const { vary } = headers;
  if (vary !== undefined && replyHeaders['vary'] !== undefined) {
    all['vary'] = `${vary}, ${replyHeaders['vary']}`;
  }
  return all;
}

/** Statuses that must not have a body (RFC 9110, 15.3.5 and 15.4.5; for their length, 8.6). */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 304;
}

function bytesOf(body: Body, length: number): string | Uint8Array {
  return isPiece(body) ? body : joined(body, length);
}

function asBuffer(piece: Piece): Buffer {
  if (typeof piece === 'string') return Buffer.from(piece);
  return Buffer.isBuffer(piece) ? piece : Buffer.from(piece);
}

/** Lets other requests run in between, however fast the reader is. */
async function* inTurns(
  parts: Iterable<Piece> | AsyncIterable<Piece>,
): AsyncGenerator<Piece, void, undefined> {
  let sinceTurn = 0;
  for await (const part of parts) {
    yield part;
    sinceTurn += part.length;
    if (sinceTurn < TURN) continue;
    sinceTurn = 0;
    await nextTurn();
  }
}

interface Begun {
  readonly first: IteratorResult<Body>;
  readonly rest: AsyncIterator<Body>;
}

/** Returns undefined if the caller has left. */
async function begun(body: AsyncIterable<Body>, { res }: NodeMessages): Promise<Begun | undefined> {
  const rest = body[Symbol.asyncIterator]();
  const first = await rest.next();
  // A failure here still counts as one at the beginning.
  if (first.done !== true) lengthOf(first.value);
  if (!res.destroyed) return { first, rest };
  await rest.return?.();
  return undefined;
}

/** The parts of a stream. It never throws: Yoga would only print the error, and leave the connection open. */
async function* guarded(
  { first, rest }: Begun,
  { res }: NodeMessages,
  conversation: Conversation,
): AsyncGenerator<Piece, void, undefined> {
  try {
    yield* inTurns(allParts(first, rest));
  } catch (error) {
    conversation.cutOff(error);
    res.destroy();
  } finally {
    await rest.return?.();
  }
}

async function* allParts(
  first: IteratorResult<Body>,
  rest: AsyncIterator<Body>,
): AsyncGenerator<Piece, void, undefined> {
  for (let part = first; part.done !== true; part = await rest.next()) yield* partsOf(part.value);
}

/**
 * Ends the connection of a caller whose body is not read to its end, after the caller could read the answer. Closing a
 * connection while the caller sends resets it, and the unread answer is lost: so the rest of the body is discarded for a
 * while.
 */
async function* lingering(
  body: Body,
  { req }: NodeMessages,
  clock: Clock,
): AsyncGenerator<Piece, void, undefined> {
  yield* partsOf(body);
  req.resume();
  const sent = finished(req, { writable: false }).catch(() => undefined);
  await Promise.race([sent, clock.sleep(LINGER_MS)]);
}

/** Joins small pieces: each write has a fixed cost. */
function* partsOf(body: Body): Generator<Piece> {
  if (isPiece(body)) return body.length > 0 ? yield body : undefined;
  let from = 0;
  let length = 0;
  for (let to = 0; to < body.length; to += 1) {
    length += lengthOf(body[to]!);
    if (length < JOINED && to + 1 < body.length) continue;
    const part = from === to ? body[from]! : joined(body.slice(from, to + 1), length);
    if (part.length > 0) yield part;
    from = to + 1;
    length = 0;
  }
}

function joined(body: Body, length = lengthOf(body)): Buffer<ArrayBuffer> {
  const all = Buffer.allocUnsafe(length);
  let at = 0;
  for (const piece of isPiece(body) ? [body] : body) {
    if (typeof piece === 'string') at += all.write(piece, at);
    else {
      all.set(piece, at);
      at += piece.length;
    }
  }
  return all;
}

function lengthOf(body: Body): number {
  if (typeof body === 'string') return Buffer.byteLength(body);
  if (isPiece(body)) return body.length;
  return body.reduce((sum: number, piece: Piece) => sum + lengthOf(piece), 0);
}

/** The body of a stream through `fetch`: the exchange continues until it is read, cancelled or broken. */
function webStream(
  body: AsyncIterable<Body>,
  conversation: Conversation,
): ReadableStream<Uint8Array> {
  const { exchange } = conversation;
  const { clock, onEnd } = conversation.parts;
  const iterator = body[Symbol.asyncIterator]();
  const over = new AbortController();
  /** By `clock.elapsed`; undefined while the next part is being made. */
  let unreadSince: number | undefined = clock.elapsed();

  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        exchange.onLeave(() => {
          if (exchange.hasLeft) stop(controller, exchange.leftBecause ?? unread());
        });
        endUnread().catch(() => {});
      },
      pull: async (controller) => {
        unreadSince = undefined;
        try {
          const { done, value } = await iterator.next();
          if (over.signal.aborted) return;
          if (!done) return controller.enqueue(joined(value));
          over.abort();
          controller.close();
          onEnd?.();
        } catch (error) {
          stop(controller, conversation.cutOff(error));
        } finally {
          unreadSince = clock.elapsed();
        }
      },
      cancel: async () => {
        over.abort();
        // Before its first part is read, `return` alone would not even begin the iterator, and so end nothing.
        exchange.leave();
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );

  function stop(controller: ReadableStreamDefaultController, error: unknown): void {
    if (over.signal.aborted) return;
    over.abort();
    controller.error(error);
    iterator.return?.().catch(() => {});
  }

  /** Ends a stream that is not read, and would hold its memory for ever. Rejects when the stream is over. */
  async function endUnread(): Promise<void> {
    for (;;) {
      const now = clock.elapsed();
      const left = (unreadSince ?? now) + STALL_MS - now;
      if (left <= 0) return exchange.leave();
      await clock.sleep(left, over.signal);
    }
  }
}

function unread(): DOMException {
  return new DOMException(
    `The answer was ended because nobody read it for ${STALL_MS / 1000} s. Send the request again.`,
    'AbortError',
  );
}

interface HandlerParts {
  /** The served schema. */
  readonly schema: GraphQLSchema;
  /** In the order in which they see a request. One of them always ends it. */
  readonly plugins: readonly GatewayPlugin[];
  readonly errors: AnswerParts['errors'];
  /** Runs around all plugins. */
  readonly telemetry: ExchangeTelemetry;
  readonly clock: Clock;
}

/** The gateway as the handler of a Node server, and as a `fetch`: both are the same Yoga. */
export interface Handler {
  (request: IncomingMessage, response: ServerResponse): void;
  /** A stream has to be read or cancelled. A stream that is not read for 60 s ends with an error. */
  fetch(...request: Parameters<typeof fetch>): Promise<Response>;
  /** Lets plugins finish their work, for 5 s at most. */
  dispose(): Promise<void>;
}

/** Answers every request, even if a stage and then the refusal of it fail. */
export function createHandler(parts: HandlerParts): Handler {
  const { schema, plugins, errors, telemetry, clock } = parts;
  let isSeen = false;
  const look: GatewayPlugin = {
    onYogaInit: ({ yoga: { getEnveloped } }) => {
      // Yoga's own list has a false for each plugin that is off.
      const all: readonly (GatewayPlugin | false)[] = getEnveloped._plugins as object[];
      isSeen = all.some((each) => each && each.onResponse);
    },
  };
  const yoga = createYoga<ServerContext>({
    schema,
    plugins: [look, ...plugins],
    fetchAPI: { Request: UnparsedRequest },
    // Plugins of the gateway do this, or nothing does. Yoga's probe and GraphiQL would run before all plugins.
    healthCheckEndpoint: NO_ADDRESS,
    graphiql: false,
    landingPage: false,
    cors: false,
    multipart: false,
    batching: false,
    maxRequestBodySize: false,
    // It would keep errors alive, with everything on their stacks.
    parserAndValidationCache: false,
    logging: false,
    maskedErrors: false,
  });
  // Yoga is a proxy, and each access through it binds a function.
  const { handleNodeRequestAndResponse, handleRequest, fetchAPI } = yoga;
  const answerParts: AnswerParts = { fetchAPI, errors, clock, isSeen, endOfTurn: turns() };

  const byNode = (req: IncomingMessage, res: ServerResponse): void => {
    const exchange = new Exchange({ req, res });
    const conversation = new Conversation(exchange, answerParts);
    // Not `once`, which adds two objects to each request: a response closes once.
    res.on('close', () => {
      if (!res.writableFinished) exchange.leave();
      exchange.end();
      telemetry.ended(exchange, res.headersSent ? res.statusCode : undefined);
    });
    const answer = async () => {
      try {
        const context = { req, res, [CONVERSATION]: conversation };
        const response = await answered(
          () => handleNodeRequestAndResponse(req, res, context),
          conversation,
        );
        try {
          const sending = send(response, { req, res });
          if (sending) await sending;
        } catch (error) {
          if (res.headersSent) throw error;
          // A plugin has set a header that Node cannot write. Node has those before it.
          for (const name of response.headers.keys()) res.removeHeader(name);
          await send(await conversation.refuse(error), { req, res });
        }
      } catch (error) {
        conversation.cutOff(error);
        res.destroy();
      }
    };
    void telemetry.run(exchange, answer);
  };

  const byFetch = (...args: Parameters<typeof fetch>): Promise<Response> => {
    const [input, init] = args;
    const request = input instanceof Request && !init ? input : new Request(input, init);
    const exchange = new Exchange(request);
    return new Promise((resolve, reject) => {
      let status: number | undefined;
      let hasEnded = false;
      const ended = () => {
        if (hasEnded) return;
        hasEnded = true;
        exchange.end();
        telemetry.ended(exchange, status);
      };
      const conversation = new Conversation(exchange, { ...answerParts, onEnd: ended });
      const answer = async () => {
        const context = { [CONVERSATION]: conversation };
        const response = await answered(() => handleRequest(request, context), conversation);
        if (exchange.hasLeft) return;
        ({ status } = response);
        // Everything except a stream is now the caller's.
        if (!conversation.streams) ended();
        resolve(response);
      };
      telemetry.run(exchange, () => {
        exchange.onLeave(() => {
          ended();
          reject(request.signal.reason as Error);
        });
        answer().catch(reject);
      });
    });
  };

  const dispose = async () => {
    const isOver = new AbortController();
    const late = clock.sleep(DISPOSE_MS, isOver.signal).catch(() => {});
    await Promise.race([yoga.dispose(), late]).finally(() => isOver.abort());
  };
  return Object.assign(byNode, { fetch: byFetch, dispose });
}

/** Yoga parses the address of every request, for hooks that read its parts. This defers it until a hook does. */
class UnparsedRequest extends YogaRequest {
  get parsedUrl(): undefined {
    return undefined;
  }
}

/** Refuses what Yoga throws: it would send the stacks of what its plugins throw. */
async function answered(
  handle: () => Response | Promise<Response>,
  conversation: Conversation,
): Promise<Response> {
  try {
    const response = await handle();
    if (response === conversation.response) return response;
    return withHeaders(response, conversation.exchange.replyHeaders);
  } catch (error) {
    return await conversation.refuse(error);
  }
}

/**
 * Adds what browsers need to read a response that a plugin has made, and caches to know that they must not keep it.
 *
 * @throws TypeError or RangeError if nothing can be sent of the response: its body was read, for example
 */
function withHeaders(response: Response, added: Exchange['replyHeaders']): Response {
  const { status, statusText, body } = response;
  // Not every global `Response` throws: frameworks replace it.
  if (body && (response.bodyUsed || body.locked)) throw new TypeError('The body was read.');
  if (body && BODILESS.has(status)) throw new TypeError(`Status ${status} has no body.`);
  if (status < 200 || status > 599) throw new RangeError(`Status ${status} cannot be sent.`);
  const headers = new Headers(response.headers);
  // A plugin that makes another body often copies the headers of the response that it has got.
  headers.delete('content-length');
  headers.delete('transfer-encoding');
  for (const [name, value] of Object.entries(added)) {
    if (!headers.has(name)) headers.set(name, value);
    else if (name === 'vary' && !headers.get(name)!.includes(value)) headers.append(name, value);
  }
  return new Response(body, { status, statusText, headers });
}

/** Null body statuses of the Fetch standard. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** Yoga cannot be created without the address of a probe. No address ends with a space. */
const NO_ADDRESS = ' ';

/** A plugin that reports to a service which does not answer must not delay the shutdown for long. */
const DISPOSE_MS = 5_000;

/**
 * Sends replies that become ready in one turn of the event loop together, in its check phase. Sending wakes a reader's
 * process if it sleeps, and this costs more than anything else about a small reply.
 */
function turns(): () => Promise<void> {
  let turn: Promise<void> | undefined;
  return () =>
    (turn ??= new Promise((resolve) => {
      setImmediate(() => {
        turn = undefined;
        resolve();
      });
    }));
}
