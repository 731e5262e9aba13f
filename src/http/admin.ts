import type { IncomingMessage, ServerResponse } from 'node:http';

interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
}

/** Answers on the admin address: GET /metrics, and nothing else. */
export function adminHandler(metrics: Metrics) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
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
