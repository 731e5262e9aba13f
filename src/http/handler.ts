import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ErrorPolicy } from './error-policy.ts';
import { Exchange, type ExchangeTelemetry, type Stages } from './exchange.ts';
import { isStream, withHeaders, type Reply } from './reply.ts';
import { responseOf, send } from './send.ts';

/** The gateway as the handler of a Node server, and as a `fetch`. */
export interface Handler {
  (request: IncomingMessage, response: ServerResponse): void;
  /** A stream has to be read or cancelled. */
  fetch(...request: Parameters<typeof fetch>): Promise<Response>;
}

/** @param answer never rejects */
export function createHandler(
  answer: (exchange: Exchange) => Promise<Reply>,
  errors: Pick<ErrorPolicy, 'cutOff'>,
  telemetry: ExchangeTelemetry,
): Handler {
  const byNode = (req: IncomingMessage, res: ServerResponse): void => {
    useOriginForm(req);
    const exchange = new Exchange({ req, res }, telemetry);
    // Not `once`, which adds two objects to each request: a response closes once.
    res.on('close', () => {
      if (res.writableFinished) exchange.end();
      else exchange.leave();
      telemetry.ended(exchange, res.headersSent ? res.statusCode : undefined);
    });
    answer(exchange)
      .then((reply) => send(reply, res, exchange))
      .catch((error: unknown) => {
        errors.cutOff(exchange, error);
        res.destroy();
      });
  };

  const byFetch = async (...args: Parameters<typeof fetch>): Promise<Response> => {
    const request = new Request(...args);
    const { signal } = request;
    const exchange = new Exchange(request, telemetry);
    let status: number | undefined;
    const left = Promise.withResolvers<never>();
    const leave = () => {
      exchange.leave();
      left.reject(signal.reason);
    };
    exchange.onEnd(() => telemetry.ended(exchange, status));
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
    const cutOff = (error: unknown) => errors.cutOff(exchange, error);
    try {
      const reply = await Promise.race([answer(exchange), left.promise]);
      const response = responseOf(reply, exchange, cutOff);
      ({ status } = reply);
      // Everything except a stream is now the caller's.
      if (!isStream(reply.body)) exchange.end();
      return response;
    } catch (error) {
      const shown = exchange.hasLeft ? error : cutOff(error);
      exchange.end();
      throw shown;
    }
  };

  return Object.assign(byNode, { fetch: byFetch });
}

/** Returns the reply of the first stage that has one. Undefined stages are switched off by the settings. */
export async function replyOfStages(
  stages: Stages,
  exchange: Exchange,
  errors: Pick<ErrorPolicy, 'refuse'>,
): Promise<Reply | undefined> {
  try {
    for (const stage of stages) {
      const made = stage?.(exchange);
      const reply = made instanceof Promise ? await made : made;
      if (reply) return withHeaders(exchange.replyHeaders, reply);
    }
    return undefined;
  } catch (error) {
    return withHeaders(exchange.replyHeaders, errors.refuse(exchange, error));
  }
}

/** The form in which clients send the address to a proxy, and may send it to any server. */
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/is;

/**
 * Turns a request target in absolute form (RFC 9112, 3.2.2) into the usual one, for everything behind it. Its host
 * replaces the header, as the RFC requires.
 */
function useOriginForm(request: IncomingMessage): void {
  if (request.url?.startsWith('/')) return;
  const [, host, rest] = ABSOLUTE.exec(request.url ?? '') ?? [];
  if (host === undefined || rest === undefined) return;
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  request.headers.host = host;
}
