import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request over a socket, as Node and the frameworks on top of it pass it to their handlers. */
export interface NodeMessages {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

/**
 * A request as it has arrived, over a socket or through `fetch`. It reads nothing of the request before it is asked,
 * because most requests need only a few of their headers.
 */
export interface Inbound {
  readonly method: string;
  /** The path as it was sent, up to the question mark. */
  readonly path: string;
  /** The text after the question mark; empty without one. */
  readonly query: string;
  /** The name by which the caller addresses this server; undefined without one, as HTTP/1.0 allows. */
  readonly host: string | undefined;
  /** The IP address of the connection; undefined through `fetch`. */
  readonly peer: string | undefined;
  /** Undefined through `fetch`. */
  readonly node: NodeMessages | undefined;
  /** Undefined over a socket. */
  readonly fetched: Request | undefined;
  /** @param name in lower case */
  header(name: string): string | undefined;
}

export function inboundOf(from: NodeMessages | Request): Inbound {
  return from instanceof Request ? new Fetched(from) : new OverSocket(from);
}

class OverSocket implements Inbound {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly node: NodeMessages;
  readonly fetched = undefined;

  constructor(node: NodeMessages) {
    const { method = '', url = '' } = node.req;
    const mark = url.indexOf('?');
    this.method = method;
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.query = mark < 0 ? '' : url.slice(mark + 1);
    this.node = node;
  }

  get host(): string | undefined {
    return this.node.req.headers.host;
  }

  get peer(): string | undefined {
    return this.node.req.socket.remoteAddress;
  }

  header(name: string): string | undefined {
    const value = this.node.req.headers[name];
    return typeof value === 'object' ? value.join(', ') : value;
  }
}

class Fetched implements Inbound {
  readonly path: string;
  readonly query: string;
  readonly peer = undefined;
  readonly node = undefined;
  readonly fetched: Request;

  constructor(request: Request) {
    const { pathname, search } = new URL(request.url);
    this.path = pathname;
    this.query = search.slice(1);
    this.fetched = request;
  }

  get method(): string {
    return this.fetched.method;
  }

  get host(): string | undefined {
    return this.header('host') ?? new URL(this.fetched.url).host;
  }

  header(name: string): string | undefined {
    return this.fetched.headers.get(name) ?? undefined;
  }
}

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
