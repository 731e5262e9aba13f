import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../clock.ts';
import { headersOf, type Exchange, type Reply, type Stage } from './exchange.ts';
import { FetchExchange, responseOf } from './over-fetch.ts';
import { NodeExchange } from './over-node.ts';
import { writeReply } from './write-reply.ts';

export interface HandlerParts {
  /** In the order in which they are asked. The last one answers everything. */
  readonly stages: readonly Stage[];
  /** Answers what a stage threw. */
  readonly refuse: (exchange: Exchange, error: unknown) => Reply | Promise<Reply>;
  /** Around all of it. */
  readonly telemetry: ExchangeTelemetry;
  /** What every error goes through. */
  readonly mask: (error: unknown) => Error;
  readonly clock: Clock;
}

export interface ExchangeTelemetry {
  /** Names the exchange, and does its work. */
  run<T>(exchange: Exchange, work: () => T): T;
  /**
   * Is called once, when all of the answer is sent or the caller has left.
   *
   * @param status undefined when there was no answer yet
   */
  ended(exchange: Exchange, status: number | undefined): void;
}

/** The gateway, as the handler of a Node server and as a `fetch`: both pass the same stages. */
export interface Handler {
  (request: IncomingMessage, response: ServerResponse): void;
  fetch(...request: Parameters<typeof fetch>): Promise<Response>;
}

/** Answers every request, also one for which a stage and `refuse` throw what nobody foresaw. */
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

  // Without await: most stages have nothing to wait for.
  const passFrom = (first: number, exchange: Exchange): Reply | Promise<Reply> => {
    for (let at = first; at < stages.length; at += 1) {
      const reply = stages[at]!(exchange);
      if (reply === undefined) continue;
      if (!isPromise(reply)) return reply;
      return reply.then((given) => given ?? passFrom(at + 1, exchange));
    }
    throw new Error('No stage has answered.');
  };

  const refused = (exchange: Exchange, error: unknown): Reply | Promise<Reply> => {
    try {
      const reply = refuse(exchange, error);
      return isPromise(reply) ? reply.catch(failed) : reply;
    } catch (thrown) {
      return failed(thrown);
    }
  };

  const failed = (error: unknown): Reply => ({
    status: 500,
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify({ errors: [mask(error)] }),
  });

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
        // It never rejects.
        if (isPromise(reply)) void reply.then(send);
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

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return value instanceof Promise;
}
