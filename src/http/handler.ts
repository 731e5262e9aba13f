import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Request as YogaRequest } from '@whatwg-node/fetch';
import { sendNodeResponse } from '@whatwg-node/server';
import type { GraphQLSchema } from 'graphql';
import { createYoga, type FetchAPI, type Plugin } from 'graphql-yoga';
import type { ErrorPolicy } from './error-policy.ts';
import { Exchange, type ExchangeTelemetry, type Stages } from './exchange.ts';
import { Inbound, useOriginForm } from './inbound.ts';
import { isStream, type Reply } from './reply.ts';
import { responseOf, type Sending } from './response.ts';

interface HandlerParts {
  /** The offered schema: what callers see, with what a company adds. */
  readonly schema: GraphQLSchema;
  /** In the order in which they see a request. One of them always ends it. */
  readonly plugins: readonly GatewayPlugin[];
  readonly errors: ErrorPolicy;
  readonly telemetry: ExchangeTelemetry;
}

/** The gateway as the handler of a Node server, and as a `fetch`: both are the same Yoga. */
export interface Handler {
  (request: IncomingMessage, response: ServerResponse): void;
  /** A stream has to be read or cancelled. */
  fetch(...request: Parameters<typeof fetch>): Promise<Response>;
  /** Lets plugins finish their work. */
  dispose(): PromiseLike<void> | void;
}

export type GatewayPlugin = Plugin<object, ServerContext>;

/** The context that Yoga passes to every hook that belongs to a request, and to resolvers. */
interface ServerContext {
  /** Yoga copies the contexts of requests through `fetch`, with their symbols. */
  readonly [CONVERSATION]: Conversation;
}

const CONVERSATION = Symbol('conversation');

export function createHandler({ schema, plugins, errors, telemetry }: HandlerParts): Handler {
  const yoga = yogaOf(schema, plugins);
  // Yoga is a proxy, and each access through it binds a function.
  const { handleNodeRequestAndResponse, handleRequest, fetchAPI } = yoga;
  const parts: ConversationParts = { fetchAPI, errors, endOfTurn: turns() };

  const byNode = (req: IncomingMessage, res: ServerResponse): void => {
    useOriginForm(req);
    const inbound = new Inbound({ req, res });
    const exchange = new Exchange(inbound, telemetry.begun(inbound));
    const conversation = new Conversation(exchange, parts);
    // Not `once`, which adds two objects to each request: a response closes once.
    res.on('close', () => {
      if (!res.writableFinished) exchange.leave();
      exchange.end();
      telemetry.ended(exchange, res.headersSent ? res.statusCode : undefined);
    });
    const context = { req, res, [CONVERSATION]: conversation };
    const answer = async () => {
      try {
        const response = await conversation.answered(() =>
          handleNodeRequestAndResponse(req, res, context),
        );
        await sendNodeResponse(response, res, req, true);
      } catch (error) {
        conversation.cutOff(error);
        res.destroy();
      }
    };
    void answer();
  };

  const byFetch = (...args: Parameters<typeof fetch>): Promise<Response> => {
    const [input, init] = args;
    const request = input instanceof Request && !init ? input : new Request(input, init);
    const inbound = new Inbound(request);
    const exchange = new Exchange(inbound, telemetry.begun(inbound));
    const conversation = new Conversation(exchange, parts);
    return new Promise((resolve, reject) => {
      let status: number | undefined;
      exchange.onEnd(() => telemetry.ended(exchange, status));
      exchange.onLeave(() => {
        exchange.end();
        reject(request.signal.reason as Error);
      });
      const context = { [CONVERSATION]: conversation };
      const answer = async () => {
        const response = await conversation.answered(() => handleRequest(request, context));
        ({ status } = response);
        // Everything except a stream is now the caller's.
        if (!conversation.streams) exchange.end();
        resolve(response);
      };
      answer().catch((error: unknown) => {
        reject(conversation.cutOff(error));
        exchange.end();
      });
    });
  };

  return Object.assign(byNode, { fetch: byFetch, dispose: () => yoga.dispose() });
}

/** Yoga without what the plugins of the gateway do, or nothing does. Its own probe and GraphiQL would run before all plugins. */
function yogaOf(schema: GraphQLSchema, plugins: readonly GatewayPlugin[]) {
  return createYoga<ServerContext>({
    schema,
    plugins: [...plugins],
    fetchAPI: { Request: UnparsedRequest },
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
}

/** Yoga parses the address of every request, for hooks that read its parts. This defers it until a hook does. */
class UnparsedRequest extends YogaRequest {
  get parsedUrl(): undefined {
    return undefined;
  }
}

/** Yoga cannot be created without the address of a probe. No address ends with a space. */
const NO_ADDRESS = ' ';

/**
 * Sends replies that become ready in one turn of the event loop together, in its check phase. Sending wakes a reader's
 * process if it sleeps, and this costs more than anything else about a small reply.
 */
function turns(): () => Promise<void> {
  let turn: Promise<void> | undefined;
  return () =>
    (turn ??= nextTurn().finally(() => {
      turn = undefined;
    }));
}

export function conversationIn(context: object): Conversation {
  return (context as ServerContext)[CONVERSATION];
}

/**
 * Makes a plugin of stages, one after the other: they run before anything of the request is parsed by Yoga or by other
 * plugins. One plugin for several, because each hook of Yoga has its cost.
 */
export function plugin(...all: Stages) {
  const stages = all.filter((stage) => stage !== undefined);
  return {
    onRequest: async ({ request, serverContext, endResponse }) => {
      const { [CONVERSATION]: conversation } = serverContext;
      // As Yoga would make the context later.
      const context = Object.assign(serverContext, { request });
      try {
        for (const stage of stages) {
          const made = stage(conversation.exchange, context);
          const reply = made instanceof Promise ? await made : made;
          if (reply) return endResponse(await conversation.respond(reply));
        }
      } catch (error) {
        endResponse(await conversation.refuse(error));
      }
    },
  } satisfies GatewayPlugin;
}

interface ConversationParts {
  readonly errors: ErrorPolicy;
  /** The one of Yoga. */
  readonly fetchAPI: FetchAPI;
  readonly endOfTurn: () => Promise<void>;
}

/** A request on its way through the plugins of Yoga, and the methods that answer it. Stages see only its `Exchange`. */
class Conversation implements Sending {
  readonly exchange: Exchange;
  /** Whether its answer is a stream. */
  streams = false;
  readonly #parts: ConversationParts;
  /** The response that the gateway made; undefined before. */
  #response: Response | undefined;

  constructor(exchange: Exchange, parts: ConversationParts) {
    this.exchange = exchange;
    this.#parts = parts;
  }

  get fetchAPI(): FetchAPI {
    return this.#parts.fetchAPI;
  }

  /** Returns the response of Yoga. Refuses what Yoga throws: it would send the stacks of what its plugins throw. */
  async answered(handle: () => Response | Promise<Response>): Promise<Response> {
    try {
      const response = await handle();
      if (response === this.#response) return response;
      return withHeaders(response, this.exchange.replyHeaders);
    } catch (error) {
      return this.refuse(error);
    }
  }

  /** Makes the response of a reply. */
  async respond(reply: Reply): Promise<Response> {
    const { exchange } = this;
    this.streams = isStream(reply.body);
    if (exchange.inbound.node && !this.streams) await this.#parts.endOfTurn();
    return (this.#response = responseOf(reply, this));
  }

  /** Answers an error that a stage threw. */
  refuse(error: unknown): Promise<Response> {
    return this.respond(this.#parts.errors.refuse(this.exchange, error));
  }

  /**
   * Ends an answer that has begun, or that could not even be refused. Logs its failure, because nothing else could
   * report it.
   *
   * @returns what a reader through `fetch` gets instead of the error
   */
  cutOff(error: unknown): Error {
    const { exchange } = this;
    const failure = exchange.hasLeft ? error : new Error(CUT_OFF, { cause: error });
    const masked = this.#parts.errors.mask(failure, exchange);
    exchange.cutOff();
    return masked;
  }
}

const CUT_OFF = 'An answer was cut off, because the rest of it could not be written.';

/** Adds what browsers need to read a response that a plugin has made, and caches to know that they must not keep it. */
function withHeaders(response: Response, added: Exchange['replyHeaders']): Response {
  const { status, statusText, body } = response;
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
