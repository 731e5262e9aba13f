import { createServerAdapter } from '@whatwg-node/server';
import { askAt, type GraphqlAnswer, type Question } from '../gateway/ask-at.ts';
import { serveHttp } from '../listening.ts';

/** One request, as it arrived. */
interface RecordedRequest {
  readonly headers: Readonly<Record<string, string>>;
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
  const handler = createServerAdapter(async (request) => {
    const { url, method } = request;
    const headers = Object.fromEntries(request.headers);
    const body = await request.text();
    received.push({ headers, body: JSON.parse(body) });
    return respond(new Request(url, { method, headers, body }));
  });
  const server = await serveHttp((request, response) => void handler(request, response));
  const url = `${server.url}/graphql`;
  return {
    url,
    ask: (...question) => askAt(url, ...question),
    received,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
