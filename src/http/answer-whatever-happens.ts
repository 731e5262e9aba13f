import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendNodeResponse } from '@whatwg-node/server';

/** A server that throws what none of its stages foresaw. */
interface Answering {
  fetch(...request: Parameters<typeof fetch>): Response | Promise<Response>;
  handleNodeRequestAndResponse(
    request: IncomingMessage,
    response: ServerResponse,
    context: object,
  ): Response | Promise<Response>;
}

/** The same server, as the handler of a Node server and as a `fetch`. */
export interface Answerer {
  (request: IncomingMessage, response: ServerResponse): Promise<void>;
  fetch(...request: Parameters<typeof fetch>): Promise<Response>;
}

/**
 * Answers also where a hook of the server throws, before there is anything of GraphQL, and ends an answer that
 * breaks while it is sent. The server library by itself gives the caller the stack trace of the one, and dies of
 * the other.
 *
 * @param mask what every error goes through
 */
export function answerWhateverHappens(
  server: Answering,
  mask: (error: unknown) => Error,
): Answerer {
  const bodyFor = (error: unknown) => JSON.stringify({ errors: [mask(error)] });
  const failed = (response: ServerResponse, error: unknown) => {
    if (response.destroyed) return;
    const body = bodyFor(error);
    if (response.headersSent) response.destroy();
    else response.writeHead(FAILED.status, FAILED.headers).end(body);
  };

  return Object.assign(
    async (request: IncomingMessage, response: ServerResponse) => {
      try {
        const context = { req: request, res: response };
        const answer = await server.handleNodeRequestAndResponse(request, response, context);
        onBreak(answer, (error) => failed(response, error));
        await sendNodeResponse(answer, response, request, true);
      } catch (error) {
        failed(response, error);
      }
    },
    {
      fetch: async (...request: Parameters<typeof fetch>) => {
        try {
          return await server.fetch(...request);
        } catch (error) {
          if (isLeft(request)) throw error;
          return new Response(bodyFor(error), FAILED);
        }
      },
    },
  );
}

const FAILED = { status: 500, headers: { 'content-type': 'application/json; charset=utf-8' } };

/** What comes in parts is a stream of Node's inside, and one that breaks with nobody listening ends the process. */
function onBreak(answer: Response, listener: (error: unknown) => void): void {
  if (!answer.headers.get('content-type')?.startsWith('multipart/')) return;
  (answer.body as Partial<NodeJS.ReadableStream> | null)?.once?.('error', listener);
}

function isLeft([input, init]: Parameters<typeof fetch>): boolean {
  const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
  return signal?.aborted === true;
}
