import { IncomingMessage } from 'node:http';

/** What frameworks like Express add to a request. */
interface Mounted extends IncomingMessage {
  /** The path at which the handler is mounted, which `url` has no longer. */
  readonly baseUrl?: string;
  readonly originalUrl?: string;
  /** The body, if somebody has read it. */
  readonly body?: unknown;
}

/**
 * Returns a request as it would be without a framework around the handler: with its path from `/graphql` on, and with a
 * body that can be read. Numbers of a body that was parsed are those that JavaScript can hold.
 */
export function asSent(request: IncomingMessage): IncomingMessage {
  const { originalUrl } = request as Mounted;
  return originalUrl === undefined && !request.readableEnded ? request : new RequestAgain(request);
}

class RequestAgain extends IncomingMessage {
  readonly #first: IncomingMessage;

  constructor(first: Mounted) {
    super(first.socket);
    this.#first = first;
    this.httpVersion = first.httpVersion;
    this.httpVersionMajor = first.httpVersionMajor;
    this.httpVersionMinor = first.httpVersionMinor;
    this.method = first.method;
    this.url = urlOf(first);
    this.rawHeaders = first.rawHeaders;
    this.headers = first.headers;
    if (first.readableEnded) this.#readAgain(bytesOf(first.body));
    else this.#passOn();
  }

  #readAgain(body: Buffer): void {
    // They are about the body that was sent, which may have been compressed.
    const { 'content-encoding': _, 'transfer-encoding': __, ...headers } = this.headers;
    this.headers = { ...headers, 'content-length': String(body.length) };
    this.complete = true;
    this.push(body);
    this.push(null);
  }

  #passOn(): void {
    this.#first
      .on('data', (part) => this.push(part) || this.#first.pause())
      .on('end', () => {
        this.complete = this.#first.complete;
        this.push(null);
      })
      .pause();
  }

  override _read(): void {
    this.#first.resume();
  }
}

function urlOf({ baseUrl = '', url = '/' }: Mounted): string {
  if (!/\/graphql\/?$/.test(baseUrl)) return url;
  return `/graphql${url.startsWith('/?') ? url.slice(1) : url.replace(/^\/$/, '')}`;
}

function bytesOf(body: unknown): Buffer {
  if (body instanceof Uint8Array) return Buffer.from(body);
  if (body === undefined || typeof body === 'string') return Buffer.from(body ?? '');
  return Buffer.from(JSON.stringify(body));
}
