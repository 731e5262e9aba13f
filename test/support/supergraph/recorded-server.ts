import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { askAt, type GraphqlAnswer, type Question } from '../gateway/ask-at.ts';

/** One request, as it arrived. */
interface RecordedRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: {
    readonly query: string;
    readonly variables?: Record<string, unknown>;
    readonly operationName?: string | null;
    readonly extensions?: unknown;
  };
}

/** A GraphQL server on its own socket that records its requests. */
export interface RecordedServer extends AsyncDisposable {
  readonly url: string;
  ask(...question: Question): Promise<GraphqlAnswer>;
  /** In the order of arrival. Empty it to count from then on. */
  readonly received: RecordedRequest[];
  /** Changes answers before they are sent, until disposed. */
  amend(change: (answer: GraphqlAnswer) => void): Disposable;
}

export async function serveRecorded(
  respond: (request: Request) => Response | Promise<Response>,
): Promise<RecordedServer> {
  const received: RecordedRequest[] = [];
  const changes = new Set<(answer: GraphqlAnswer) => void>();
  const server = createServer((incoming, outgoing) => {
    answer(incoming).then(
      ({ response, body }) =>
        outgoing
          .writeHead(response.status, {
            'content-type': response.headers.get('content-type') ?? 'text/plain',
          })
          .end(body),
      (error: unknown) => outgoing.destroy(error as Error),
    );
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;

  async function answer(incoming: IncomingMessage) {
    const { method = '', headers } = incoming;
    const sent = await text(incoming);
    if (sent !== '') received.push({ method, headers, body: JSON.parse(sent) });
    const response = await respond(
      new Request(new URL(incoming.url ?? '', url), {
        method,
        headers: withoutConnection(headers),
        ...(sent !== '' && { body: sent }),
      }),
    );
    const body = await response.text();
    if (changes.size === 0) return { response, body };
    const changed = JSON.parse(body) as GraphqlAnswer;
    for (const change of changes) change(changed);
    return { response, body: JSON.stringify(changed) };
  }

  return {
    url,
    ask: (...question) => askAt(url, ...question),
    received,
    amend: (change) => {
      changes.add(change);
      return { [Symbol.dispose]: () => void changes.delete(change) };
    },
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The references to entities in a request, whatever the names of its variables. */
export function representationsIn({ body }: RecordedRequest): Record<string, unknown>[] {
  return Object.values(body.variables ?? {})
    .flat()
    .filter((value): value is Record<string, unknown> => isObject(value) && '__typename' in value);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Headers of one connection are not passed on to the next. */
const OF_THE_CONNECTION = ['connection', 'content-length', 'host', 'transfer-encoding'];

function withoutConnection(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => !OF_THE_CONNECTION.includes(name))
      .map(([name, value]) => [name, String(value)]),
  );
}
