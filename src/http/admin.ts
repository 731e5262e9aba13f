import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { MISDIRECTED } from './hosts.ts';

interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
}

const UNREADABLE = 'The metrics cannot be read. The log of the gateway has the reason.';

/** The handler of the admin address, which serves only GET /metrics. */
export function adminHandler(
  metrics: Metrics,
  isOurHost: (host: string | undefined) => boolean,
  log: Logger,
) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!isOurHost(request.headers.host)) {
      return void response.writeHead(421).end(`${MISDIRECTED}\n`);
    }
    const path = request.url?.split('?', 1)[0];
    if (path !== '/metrics') return void response.writeHead(404).end();
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return void response.writeHead(405, { allow: 'GET, HEAD' }).end();
    }
    try {
      const text = await metrics.text();
      response.writeHead(200, { 'content-type': metrics.contentType }).end(text);
    } catch (error) {
      log.error({ err: error }, 'the metrics cannot be read');
      response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(`${UNREADABLE}\n`);
    }
  };
}
