import type { IncomingMessage, ServerResponse } from 'node:http';
import { Request as YogaRequest } from '@whatwg-node/fetch';
import { sendNodeResponse } from '@whatwg-node/server';
import type { GraphQLSchema } from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import type { ErrorPolicy } from './error-policy.ts';
import { Exchange, type ExchangeTelemetry, type Stages } from './exchange.ts';
import { useOriginForm } from './origin-form.ts';
import { respond } from './response.ts';

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
  readonly [EXCHANGE]: Exchange;
}

const EXCHANGE = Symbol('exchange');

export function exchangeIn(context: object): Exchange {
  return (context as ServerContext)[EXCHANGE];
}

export function createHandler({ schema, plugins, errors, telemetry }: HandlerParts): Handler {
  const yoga = yogaOf(schema, plugins);
  // Yoga is a proxy, and each access through it binds a function.
  const { handleNodeRequestAndResponse, handleRequest } = yoga;

  /** Returns the response of Yoga. Refuses what Yoga throws: it would send the stacks of what its plugins throw. */
  const answered = async (
    exchange: Exchange,
    handle: () => Response | Promise<Response>,
  ): Promise<Response> => {
    try {
      const response = await handle();
      if (response === exchange.response) return response;
      return withHeaders(response, exchange.replyHeaders);
    } catch (error) {
      return respond(exchange, errors.refuse(exchange, error), errors.cutOff);
    }
  };

  const byNode = (req: IncomingMessage, res: ServerResponse): void => {
    useOriginForm(req);
    const exchange = new Exchange({ req, res }, telemetry);
    // Not `once`, which adds two objects to each request: a response closes once.
    res.on('close', () => {
      if (!res.writableFinished) exchange.leave();
      exchange.end();
      telemetry.ended(exchange, res.headersSent ? res.statusCode : undefined);
    });
    const context = { req, res, [EXCHANGE]: exchange };
    const answer = async () => {
      try {
        const response = await answered(exchange, () =>
          handleNodeRequestAndResponse(req, res, context),
        );
        await sendNodeResponse(response, res, req, true);
      } catch (error) {
        errors.cutOff(exchange, error);
        res.destroy();
      }
    };
    void answer();
  };

  const byFetch = (...args: Parameters<typeof fetch>): Promise<Response> => {
    const request = new Request(...args);
    const exchange = new Exchange(request, telemetry);
    return new Promise((resolve, reject) => {
      let status: number | undefined;
      exchange.onEnd(() => telemetry.ended(exchange, status));
      const leave = () => {
        exchange.leave();
        exchange.end();
        reject(request.signal.reason as Error);
      };
      if (request.signal.aborted) leave();
      request.signal.addEventListener('abort', leave);
      // The signal may outlive many requests.
      exchange.onEnd(() => request.signal.removeEventListener('abort', leave));
      const answer = async () => {
        const context = { [EXCHANGE]: exchange };
        const response = await answered(exchange, () => handleRequest(request, context));
        ({ status } = response);
        // Everything except a stream is now the caller's.
        if (!exchange.isStreaming) exchange.end();
        resolve(response);
      };
      answer().catch((error: unknown) => {
        reject(errors.cutOff(exchange, error));
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
 * Makes a plugin of stages, one after the other: they run before anything of the request is parsed by Yoga or by other
 * plugins. One plugin for several, because each hook of Yoga has its cost.
 */
export function plugin({ refuse, cutOff }: Refusing, ...all: Stages) {
  const stages = all.filter((stage) => stage !== undefined);
  return {
    onRequest: async ({ request, serverContext, endResponse }) => {
      const exchange = exchangeIn(serverContext);
      // As Yoga would make the context later.
      exchange.context = Object.assign(serverContext, { request });
      try {
        for (const stage of stages) {
          const made = stage(exchange);
          const reply = made instanceof Promise ? await made : made;
          if (reply) return endResponse(await respond(exchange, reply, cutOff));
        }
      } catch (error) {
        endResponse(await respond(exchange, refuse(exchange, error), cutOff));
      }
    },
  } satisfies GatewayPlugin;
}

type Refusing = Pick<ErrorPolicy, 'refuse' | 'cutOff'>;

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
