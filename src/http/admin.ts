import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';

interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
}

/** The handler of the admin address, which serves only `/metrics`. */
export function adminHandler(metrics: Metrics, log: Logger) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url?.split('?', 1)[0];
    if (path !== '/metrics') return void response.writeHead(404).end();
    try {
      const text = await metrics.text();
      response.writeHead(200, { 'content-type': metrics.contentType }).end(text);
    } catch (error) {
      log.error({ err: error }, 'the metrics cannot be read');
      response.writeHead(500).end();
    }
  };
}
