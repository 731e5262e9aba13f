import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../clock.ts';
import {
  errorReply,
  type Exchange,
  type ExchangeTelemetry,
  type Reply,
  type Stage,
} from '../exchange.ts';
import { FetchExchange, responseOf } from './over-fetch.ts';
import { NodeExchange, writeReply } from './over-node.ts';

export interface HandlerParts {
  /** In the order in which they are called. The last one always replies. */
  readonly stages: readonly Stage[];
  /** Answers what a stage threw. */
  readonly refuse: (exchange: Exchange, error: unknown) => Reply | Promise<Reply>;
  /** Runs around all stages. */
  readonly telemetry: ExchangeTelemetry;
  /** Masks unexpected errors. */
  readonly mask: (error: unknown) => Error;
  readonly clock: Clock;
}

/** The gateway as the handler of a Node server, and as a `fetch`: both run the same stages. */
export interface Handler {
  (request: IncomingMessage, response: ServerResponse): void;
  fetch(...request: Parameters<typeof fetch>): Promise<Response>;
}

/** Answers every request, even if a stage and then `refuse` throw. */
export function createHandler(parts: HandlerParts): Handler {
  const { stages, refuse, telemetry, mask, clock } = parts;

  const answer = (exchange: Exchange): Reply | Promise<Reply> => {
    try {
      const reply = passFrom(0, exchange);
      return isPromise(reply) ? reply.catch((error: unknown) => refused(exchange, error)) : reply;
    } catch (error) {
      return refused(exchange, error);
    }
  };

  // Without await, because most stages return no promise: awaiting each of them would cost a turn of the event loop.
  const passFrom = (first: number, exchange: Exchange): Reply | Promise<Reply> => {
    for (let at = first; at < stages.length; at += 1) {
      const reply = stages[at]!(exchange);
      if (reply === undefined) continue;
      if (!isPromise(reply)) return reply;
      return reply.then((given) => given ?? passFrom(at + 1, exchange));
    }
    throw new Error('No stage has replied.');
  };

  const refused = (exchange: Exchange, error: unknown): Reply | Promise<Reply> => {
    try {
      const reply = refuse(exchange, error);
      return isPromise(reply) ? reply.catch(failed) : reply;
    } catch (thrown) {
      return failed(thrown);
    }
  };

  const failed = (error: unknown): Reply => errorReply(500, mask(error));

  let turnEnd: Promise<void> | undefined;
  /**
   * Replies that get ready in one turn of the event loop are sent together in its check phase. To send one wakes the
   * process of its reader, if that sleeps, and this costs more than anything else about a small reply.
   */
  const endOfTurn = () =>
    (turnEnd ??= new Promise((resolve) => {
      setImmediate(() => {
        turnEnd = undefined;
        resolve();
      });
    }));

  const byNode = (request: IncomingMessage, response: ServerResponse): void => {
    const exchange = new NodeExchange(request);
    response.once('close', () => {
      if (!response.writableFinished) exchange.leave();
      exchange.end();
      telemetry.ended(exchange, response.headersSent ? response.statusCode : undefined);
    });
    const broken = (error: unknown) => {
      const reply = failed(error);
      if (response.headersSent) response.destroy();
      else void writeReply(reply, { ...reply.headers }, { request, response, clock });
    };
    const send = (reply: Reply) => {
      try {
        const headers = headersOf(reply, exchange);
        writeReply(reply, headers, { request, response, clock })?.catch(broken);
      } catch (error) {
        broken(error);
      }
    };
    try {
      telemetry.run(exchange, () => {
        const reply = answer(exchange);
        // This promise never rejects: `answer` handles every error.
        if (isPromise(reply)) void reply.then((given) => endOfTurn().then(() => send(given)));
        else send(reply);
      });
    } catch (error) {
      broken(error);
    }
  };

  const byFetch = (...given: Parameters<typeof fetch>): Promise<Response> => {
    const [input, init] = given;
    const request = input instanceof Request && !init ? input : new Request(input, init);
    const exchange = new FetchExchange(request);
    return new Promise((resolve, reject) => {
      let isEnded = false;
      const ended = (status: number | undefined) => {
        if (!isEnded) telemetry.ended(exchange, status);
        isEnded = true;
        exchange.end();
      };
      const send = (reply: Reply) => {
        const headers = headersOf(reply, exchange);
        const response = responseOf({ ...reply, headers }, failed);
        ended(response.status);
        resolve(response);
      };
      telemetry.run(exchange, () => {
        exchange.onLeave(() => {
          ended(undefined);
          reject(request.signal.reason as Error);
        });
        void Promise.resolve(answer(exchange)).then(send).catch(reject);
      });
    });
  };

  return Object.assign(byNode, { fetch: byFetch });
}

/** The headers of the reply together with those of the exchange. */
function headersOf({ headers }: Reply, { replyHeaders }: Exchange): Record<string, string> {
  const all = { ...headers, ...replyHeaders };
  const { vary } = headers;
  if (vary !== undefined && replyHeaders['vary'] !== undefined) {
    all['vary'] = `${vary}, ${replyHeaders['vary']}`;
  }
  return all;
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return value instanceof Promise;
}
