import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { askAt, type GraphqlAnswer, type Question } from '../gateway/ask-at.ts';

/** One request, as it arrived. */
interface RecordedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: { readonly query: string; readonly variables?: Record<string, unknown> };
}

/** A GraphQL server on its own socket that records its requests. */
export interface RecordedServer extends AsyncDisposable {
  readonly url: string;
  ask(...question: Question): Promise<GraphqlAnswer>;
  /** In the order of arrival. Empty it to count from then on. */
  readonly received: RecordedRequest[];
}

export async function serveRecorded(
  respond: (request: Request) => Response | Promise<Response>,
): Promise<RecordedServer> {
  const received: RecordedRequest[] = [];
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing));
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = '', headers } = incoming;
    const body = await text(incoming);
    if (body !== '') received.push({ headers, body: JSON.parse(body) });
    const request = new Request(new URL(incoming.url!, url), {
      method,
      headers: withoutConnection(headers),
      ...(body !== '' && { body }),
    });
    const response = await respond(request);
    const type = response.headers.get('content-type') ?? 'text/plain';
    outgoing.writeHead(response.status, { 'content-type': type }).end(await response.text());
  };
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  return {
    url,
    ask: (...question) => askAt(url, ...question),
    received,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Headers of one connection are not passed on to the next. */
const OF_THE_CONNECTION = ['connection', 'content-length', 'host', 'transfer-encoding'];

function withoutConnection(headers: IncomingHttpHeaders): [string, string][] {
  return Object.entries(headers)
    .filter(([name]) => !OF_THE_CONNECTION.includes(name))
    .map(([name, value]) => [name, String(value)]);
}
