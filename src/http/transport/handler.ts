import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../clock.ts';
import { codeOf, knownCode } from '../../errors.ts';
import {
  errorReply,
  isStream,
  type Exchange,
  type ExchangeTelemetry,
  type MaskFor,
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
  readonly mask: MaskFor;
  readonly clock: Clock;
}

/** The gateway as the handler of a Node server, and as a `fetch`: both run the same stages. */
export interface Handler {
  (request: IncomingMessage, response: ServerResponse): void;
  /** A stream has to be read or cancelled. One that nobody reads for 60 s ends with an error. */
  fetch(...request: Parameters<typeof fetch>): Promise<Response>;
}

/** Answers every request, even if a stage and then `refuse` throw. */
export function createHandler(parts: HandlerParts): Handler {
  const { stages, refuse, telemetry, mask, clock } = parts;

  /**
   * Calls the stages from this one on, until one replies. With a callback and without await: most stages return no
   * promise, and each promise between two steps costs as much as a step.
   */
  const answerFrom = (first: number, exchange: Exchange, send: (reply: Reply) => void): void => {
    let reply: ReturnType<Stage>;
    let at = first;
    try {
      while ((reply = stages[at]!(exchange)) === undefined) at += 1;
    } catch (error) {
      return void refused(exchange, error).then(send);
    }
    if (!isPromise(reply)) return send(reply);
    reply.then(
      (given) => (given ? send(given) : answerFrom(at + 1, exchange, send)),
      (error: unknown) => refused(exchange, error).then(send),
    );
  };

  const refused = async (exchange: Exchange, error: unknown): Promise<Reply> => {
    try {
      return await refuse(exchange, error);
    } catch (thrown) {
      return failed(exchange, thrown);
    }
  };

  const failed = (exchange: Exchange, error: unknown): Reply => {
    const masked = mask(error, exchange);
    exchange.outcome = knownCode(codeOf(masked));
    return errorReply(500, masked);
  };

  /** Logs every failure behind the beginning of an answer: nothing else could report it. */
  const cutOff = (exchange: Exchange, error: unknown): Error => {
    const masked = mask(exchange.hasLeft ? error : new Error(CUT_OFF, { cause: error }), exchange);
    exchange.cutOff();
    return masked;
  };

  let ready: (() => void)[] = [];
  /**
   * Replies that get ready in one turn of the event loop are sent together in its check phase. To send one wakes the
   * process of its reader, if that sleeps, and this costs more than anything else about a small reply.
   */
  const atEndOfTurn = (send: () => void): void => {
    if (ready.push(send) > 1) return;
    setImmediate(() => {
      const all = ready;
      ready = [];
      for (const one of all) one();
    });
  };

  const byNode = (request: IncomingMessage, response: ServerResponse): void => {
    const exchange = new NodeExchange(request, response);
    // Not `once`, which adds two objects to each request: a response closes once.
    response.on('close', () => {
      if (!response.writableFinished) exchange.leave();
      exchange.end();
      telemetry.ended(exchange, response.headersSent ? response.statusCode : undefined);
    });
    const write = (reply: Reply, onFailure: (error: unknown) => void) => {
      try {
        const headers = headersOf(reply, exchange);
        writeReply(reply, headers, { request, response, clock })?.catch(onFailure);
      } catch (error) {
        onFailure(error);
      }
    };
    const cut = (error: unknown) => {
      cutOff(exchange, error);
      response.destroy();
    };
    const broken = (error: unknown) => {
      if (response.headersSent) cut(error);
      else write(failed(exchange, error), cut);
    };
    const send = (reply: Reply) => write(reply, broken);
    try {
      telemetry.run(exchange, () =>
        answerFrom(0, exchange, (reply) => {
          // What was sent may be large, and earlier answers of the connection may come first.
          exchange.dropParams();
          // A stream is written in the asynchronous context of its request, which an operator may trace.
          if (isStream(reply.body)) {
            // A stream may last for minutes.
            exchange.dropHead();
            send(reply);
          } else atEndOfTurn(() => send(reply));
        }),
      );
    } catch (error) {
      broken(error);
    }
  };

  const byFetch = (...given: Parameters<typeof fetch>): Promise<Response> => {
    const [input, init] = given;
    const request = input instanceof Request && !init ? input : new Request(input, init);
    const exchange = new FetchExchange(request);
    return new Promise((resolve, reject) => {
      let status: number | undefined;
      let hasEnded = false;
      const ended = () => {
        if (hasEnded) return;
        hasEnded = true;
        exchange.end();
        telemetry.ended(exchange, status);
      };
      const onBreak = (error: unknown) => cutOff(exchange, error);
      const answer = (reply: Reply) => {
        const headers = headersOf(reply, exchange);
        const answering = { exchange, clock, onEnd: ended, onBreak };
        const response = responseOf({ ...reply, headers }, answering);
        ({ status } = response);
        // Everything but a stream is the caller's now.
        if (!isStream(reply.body)) ended();
        resolve(response);
      };
      const send = (reply: Reply) => {
        if (exchange.hasLeft) return;
        try {
          answer(reply);
        } catch (error) {
          answer(failed(exchange, error));
        }
      };
      telemetry.run(exchange, () => {
        exchange.onLeave(() => {
          ended();
          reject(request.signal.reason as Error);
        });
        answerFrom(0, exchange, send);
      });
    });
  };

  return Object.assign(byNode, { fetch: byFetch });
}

const CUT_OFF = 'An answer was cut off, because the rest of it could not be written.';

/** The headers of the reply together with those of the exchange. */
function headersOf({ headers }: Reply, { replyHeaders }: Exchange): Record<string, string> {
  const all = { ...headers, ...replyHeaders };
  // Only who writes a body knows how it is framed, and two ways at once let a proxy lose count (RFC 9112, 6.1).
  delete all['transfer-encoding'];
  delete all['content-length'];
  const { vary } = headers;
  if (vary !== undefined && replyHeaders['vary'] !== undefined) {
    all['vary'] = `${vary}, ${replyHeaders['vary']}`;
  }
  return all;
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return value instanceof Promise;
}
