import type { IncomingMessage } from 'node:http';

/** The form in which clients send the address to a proxy, and may send it to any server. */
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/is;

/**
 * Turns a request target in absolute form (RFC 9112, 3.2.2) into the usual one, for everything behind it. Its host
 * replaces the header, as the RFC requires.
 */
export function useOriginForm(request: IncomingMessage): void {
  if (request.url?.startsWith('/')) return;
  const [, host, rest] = ABSOLUTE.exec(request.url ?? '') ?? [];
  if (host === undefined || rest === undefined) return;
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  request.headers.host = host;
}
