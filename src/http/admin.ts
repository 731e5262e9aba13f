import type { IncomingMessage, ServerResponse } from 'node:http';
import type { IsOurHost } from './origin/host-names.ts';
import { MISDIRECTED } from './origin/known-hosts.ts';

interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
}

/** Answers on the admin address: GET /metrics, and nothing else. */
export function adminHandler(metrics: Metrics, isOurHost: IsOurHost) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!isOurHost(request.headers.host))
      return void response.writeHead(421).end(`${MISDIRECTED}\n`);
    const path = request.url?.split('?', 1)[0];
    if (path !== '/metrics') return void response.writeHead(404).end();
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return void response.writeHead(405, { allow: 'GET, HEAD' }).end();
    }
    try {
      const text = await metrics.text();
      response.writeHead(200, { 'content-type': metrics.contentType }).end(text);
    } catch {
      response.writeHead(500).end();
    }
  };
}
