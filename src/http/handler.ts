import type { IncomingMessage, ServerResponse } from 'node:http';
import { Request as YogaRequest } from '@whatwg-node/fetch';
import type { GraphQLSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { Clock } from '../clock.ts';
import {
  contextOf,
  type Conversation,
  type GatewayPlugin,
  type ServerContext,
} from './conversation.ts';
import type { ErrorPolicy } from './error-policy.ts';
import { Exchange, isStream, type ExchangeTelemetry, type Reply } from './exchange.ts';
import { responseOf, send } from './response.ts';

export interface HandlerParts {
  /** The served schema. */
  readonly schema: GraphQLSchema;
  /** In the order in which they see a request. One of them always ends it. */
  readonly plugins: readonly GatewayPlugin[];
  readonly errors: Pick<ErrorPolicy, 'refuse' | 'fail' | 'mask'>;
  /** Runs around all plugins. */
  readonly telemetry: ExchangeTelemetry;
  readonly clock: Clock;
}

/** The gateway as the handler of a Node server, and as a `fetch`: both are the same Yoga. */
export interface Handler {
  (request: IncomingMessage, response: ServerResponse): void;
  /** A stream has to be read or cancelled. One that nobody reads for 60 s ends with an error. */
  fetch(...request: Parameters<typeof fetch>): Promise<Response>;
  /** Lets plugins end what they have begun, in 5 s at most. */
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
      isSeen = all.some((one) => one && one.onResponse);
    },
  };
  const yoga = createYoga<ServerContext>({
    schema,
    plugins: [look, ...plugins],
    fetchAPI: { Request: UnparsedRequest },
    // What these do is done by plugins of ours, or not at all. Yoga's probe and its GraphiQL would come before all plugins.
    healthCheckEndpoint: NO_ADDRESS,
    graphiql: false,
    landingPage: false,
    cors: false,
    multipart: false,
    batching: false,
    maxRequestBodySize: false,
    // It would keep errors with all that is on their stacks.
    parserAndValidationCache: false,
    logging: false,
    maskedErrors: false,
  });
  // Each access through the proxy that Yoga is binds a function.
  const { handleNodeRequestAndResponse, handleRequest, fetchAPI } = yoga;
  const endOfTurn = turns();

  /** Logs every failure behind the beginning of an answer: nothing else could report it. */
  const cutOff = (exchange: Exchange, error: unknown): Error => {
    const masked = errors.mask(
      exchange.hasLeft ? error : new Error(CUT_OFF, { cause: error }),
      exchange,
    );
    exchange.cutOff();
    return masked;
  };

  const conversationOf = (exchange: Exchange, onEnd = () => {}): Conversation => {
    const onBreak = (error: unknown) => cutOff(exchange, error);
    const made = (reply: Reply) =>
      responseOf(reply, fetchAPI, {
        exchange,
        clock,
        // Plugins may also wrap the handler that goes through the steps of Yoga.
        isSeen: isSeen || conversation.isShared,
        onEnd,
        onBreak,
      });
    const conversation: Conversation = {
      exchange,
      streams: false,
      isShared: false,
      response: undefined,
      respond: async (reply) => {
        // What was sent may be large, and earlier answers of the connection may come first.
        exchange.dropParams();
        // A refusal for which there is no memory: it must not wait for the others of its turn.
        if (exchange.isHungUp) {
          conversation.response = new fetchAPI.Response(null, { status: reply.status });
          return conversation.response;
        }
        conversation.streams = isStream(reply.body);
        // A stream may last for minutes.
        if (conversation.streams) {
          if (!conversation.isShared) exchange.dropHead();
        } else if (exchange.node) await endOfTurn();
        try {
          const response = made(reply);
          // Each await costs a turn of the microtasks.
          conversation.response = response instanceof Promise ? await response : response;
        } catch (error) {
          conversation.streams = false;
          conversation.response = await made(errors.fail(exchange, error));
        }
        return conversation.response;
      },
      refuse: async (error) => {
        let reply: Reply;
        try {
          reply = await errors.refuse(exchange, error);
        } catch (thrown) {
          reply = errors.fail(exchange, thrown);
        }
        return conversation.respond(reply);
      },
    };
    return conversation;
  };

  const byNode = (req: IncomingMessage, res: ServerResponse): void => {
    const exchange = new Exchange({ req, res });
    const conversation = conversationOf(exchange);
    // Not `once`, which adds two objects to each request: a response closes once.
    res.on('close', () => {
      if (!res.writableFinished) exchange.leave();
      exchange.end();
      telemetry.ended(exchange, res.headersSent ? res.statusCode : undefined);
    });
    const answer = async () => {
      try {
        const context = contextOf(conversation, { req, res });
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
        cutOff(exchange, error);
        res.destroy();
      }
    };
    void telemetry.run(exchange, answer);
  };

  const byFetch = (...given: Parameters<typeof fetch>): Promise<Response> => {
    const [input, init] = given;
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
      const conversation = conversationOf(exchange, ended);
      const answer = async () => {
        const context = contextOf(conversation, {});
        const response = await answered(() => handleRequest(request, context), conversation);
        if (exchange.hasLeft) return;
        ({ status } = response);
        // Everything but a stream is the caller's now.
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

/** Yoga would parse the address of each request, for hooks that read it in parts. Now it does when one of them does. */
class UnparsedRequest extends YogaRequest {
  get parsedUrl(): undefined {
    return undefined;
  }
}

/** Yoga would send the stacks of what its plugins throw. */
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

const CUT_OFF = 'An answer was cut off, because the rest of it could not be written.';

/**
 * Replies that get ready in one turn of the event loop are sent together in its check phase. To send one wakes the
 * process of its reader, if that sleeps, and this costs more than anything else about a small reply.
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
