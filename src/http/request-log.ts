import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';

/** One line for each request: no query string, no operation, no variables, since they may name people. */
export function logRequests(log: Logger, clock: Clock): Plugin {
  const startedAt = new WeakMap<Request, number>();
  return {
    onRequest({ request }) {
      startedAt.set(request, clock.elapsed());
    },
    onResponse({ request, response }) {
      const ms = Math.round(clock.elapsed() - (startedAt.get(request) ?? clock.elapsed()));
      const { method } = request;
      const { pathname } = new URL(request.url);
      const isProbe = pathname === '/health' || pathname === '/ready';
      log[isProbe ? 'debug' : 'info'](
        { method, path: pathname, status: response.status, ms },
        'request',
      );
    },
  };
}
