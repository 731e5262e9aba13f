import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request over a socket, as Node and the frameworks on top of it pass it to their handlers. */
export interface NodeMessages {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

/**
 * A request as it has arrived, over a socket or through `fetch`. It reads no header before it is asked, because most
 * requests need only a few of them.
 */
export class Inbound {
  readonly method: string;
  /** The path as it was sent, up to the question mark. */
  readonly path: string;
  /** The text after the question mark; empty without one. */
  readonly query: string;
  /** Undefined through `fetch`. */
  readonly node: NodeMessages | undefined = undefined;
  /** Undefined over a socket. */
  readonly fetched: Request | undefined = undefined;

  constructor(from: NodeMessages | Request) {
    if (from instanceof Request) {
      const { pathname, search } = new URL(from.url);
      this.method = from.method;
      this.path = pathname;
      this.query = search.slice(1);
      this.fetched = from;
    } else {
      const { method = '', url = '' } = from.req;
      const mark = url.indexOf('?');
      this.method = method;
      this.path = mark < 0 ? url : url.slice(0, mark);
      this.query = mark < 0 ? '' : url.slice(mark + 1);
      this.node = from;
    }
  }

  /** The name by which the caller addresses this server; undefined without one, as HTTP/1.0 allows. */
  get host(): string | undefined {
    return this.header('host') ?? (this.fetched && new URL(this.fetched.url).host);
  }

  /** The IP address of the connection; undefined through `fetch`. */
  get peer(): string | undefined {
    return this.node?.req.socket.remoteAddress;
  }

  /** @param name in lower case */
  header(name: string): string | undefined {
    if (!this.node) return this.fetched!.headers.get(name) ?? undefined;
    const value = this.node.req.headers[name];
    return typeof value === 'object' ? value.join(', ') : value;
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
