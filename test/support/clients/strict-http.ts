import { connect, type Socket } from 'node:net';

export interface StrictReply {
  readonly status: number;
  /** Headers by their names in lower case, with every value that was sent. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: string;
  /** How the end of the body was found. */
  readonly framing: 'none' | 'content-length' | 'chunked' | 'close';
}

/**
 * One connection whose replies are read strictly (RFC 9112, 6): bytes that belong to no reply, two ways of framing, or
 * one where none is allowed throw.
 */
export class StrictConnection implements Disposable {
  readonly #socket: Socket;
  readonly #arriving: AsyncIterator<Buffer>;
  #bytes: Buffer = Buffer.alloc(0);

  constructor({ url }: { url: string }) {
    const { hostname, port } = new URL(url);
    this.#socket = connect(Number(port), hostname).on('error', () => {});
    this.#arriving = this.#socket.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  }

  /** Sends one request as it stands, and reads its reply. */
  async send(request: string): Promise<StrictReply> {
    this.#socket.write(request);
    const method = request.slice(0, request.indexOf(' '));
    const [line = '', ...fields] = (await this.#through('\r\n\r\n')).trimEnd().split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) [\w -]+$/.exec(line)?.[1]);
    if (!status) throw new Error(`Not a status line: ${line}`);
    const headers = new Map<string, string[]>();
    for (const field of fields) {
      const [, name, value] = /^([\w-]+): *(.*)$/.exec(field) ?? [];
      if (name === undefined) throw new Error(`Not a header: ${field}`);
      const key = name.toLowerCase();
      headers.set(key, [...(headers.get(key) ?? []), value!]);
    }
    const framing = framingOf(method, status, headers);
    const body = await this.#body(framing, headers);
    if (this.#bytes.length > 0) throw new Error(`Behind the body: ${this.#bytes.toString()}`);
    return { status, headers, body, framing };
  }

  /** Whether the other side closes the connection, and sends nothing more before. */
  async isClosed(): Promise<boolean> {
    const { done } = await this.#arriving.next();
    return done === true;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  async #body(framing: StrictReply['framing'], headers: StrictReply['headers']): Promise<string> {
    if (framing === 'none') return '';
    if (framing === 'content-length') return this.#take(Number(headers.get('content-length')![0]));
    if (framing === 'close') {
      while (await this.#more()) {
        // Reads the body to its end.
      }
      return this.#take(this.#bytes.length);
    }
    let body = '';
    for (;;) {
      const size = (await this.#through('\r\n')).trimEnd();
      if (!/^[\da-f]+$/i.test(size)) throw new Error(`Not the size of a chunk: ${size}`);
      body += await this.#take(Number.parseInt(size, 16));
      if ((await this.#take(2)) !== '\r\n') throw new Error('A chunk is longer than its size.');
      if (/^0+$/.test(size)) return body;
    }
  }

  async #through(end: string): Promise<string> {
    while (!this.#bytes.includes(end)) {
      if (!(await this.#more())) throw new Error(`The connection ended: ${this.#bytes.toString()}`);
    }
    return this.#take(this.#bytes.indexOf(end) + end.length);
  }

  async #take(length: number): Promise<string> {
    while (this.#bytes.length < length) {
      if (!(await this.#more())) throw new Error('The connection ended in the middle of a body.');
    }
    const taken = this.#bytes.subarray(0, length).toString();
    this.#bytes = this.#bytes.subarray(length);
    return taken;
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#arriving.next();
    if (done) return false;
    this.#bytes = Buffer.concat([this.#bytes, value]);
    return true;
  }
}

function framingOf(
  method: string,
  status: number,
  headers: StrictReply['headers'],
): StrictReply['framing'] {
  const lengths = headers.get('content-length') ?? [];
  const codings = headers.get('transfer-encoding') ?? [];
  if (lengths.length + codings.length > 1) {
    throw new Error(`Framed in several ways: ${[...lengths, ...codings].join('; ')}`);
  }
  if (status === 204 || status === 304) {
    if (lengths.length + codings.length > 0) throw new Error(`A ${status} has no body to frame.`);
    return 'none';
  }
  if (method === 'HEAD') return 'none';
  if (codings.length > 0) {
    if (codings[0] !== 'chunked') throw new Error(`Not a known coding: ${codings[0]}`);
    return 'chunked';
  }
  if (lengths.length === 0) {
    if (headers.get('connection')?.[0]?.toLowerCase() !== 'close') {
      throw new Error('A body without an end, on a connection that stays open.');
    }
    return 'close';
  }
  if (!/^\d+$/.test(lengths[0]!)) throw new Error(`Not a length: ${lengths[0]}`);
  return 'content-length';
}
