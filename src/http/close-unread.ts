import { finished } from 'node:stream/promises';
import type { Plugin } from 'graphql-yoga';
import type { Clock } from '../clock.ts';
import type { ServerContext } from './front-door/remote-address.ts';

/** Between the refusal of a body and the end of its connection, at most. */
const LINGER_MS = 1_000;

/**
 * Lets the caller read that the body is too large. To close a connection while somebody sends makes the system
 * reset it, and what was not read there yet is lost: so what still comes is dropped for a while before.
 */
export function closeUnread(clock: Clock): Plugin<object, ServerContext> {
  return {
    async onResponse({ response, serverContext: { req }, setResponse, fetchAPI }) {
      if (response.status !== 413 || !req || req.complete) return;
      const body = new Uint8Array(await response.arrayBuffer());
      const headers = new fetchAPI.Headers(response.headers);
      headers.set('content-length', String(body.byteLength));
      const stream = new fetchAPI.ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(body),
        pull: async (controller) => {
          req.resume();
          const sent = finished(req, { writable: false }).catch(() => {});
          await Promise.race([sent, clock.sleep(LINGER_MS)]);
          controller.close();
        },
      });
      setResponse(new fetchAPI.Response(stream, { status: 413, headers }));
    },
  };
}
