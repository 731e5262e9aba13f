import type { IncomingMessage } from 'node:http';
import { BodyTooLarge } from '../../read-body.ts';
import { Exchange } from './exchange.ts';

/** An exchange over a socket. */
export class NodeExchange extends Exchange {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly request: IncomingMessage;

  constructor(request: IncomingMessage) {
    super();
    const { method = '', url = '' } = request;
    const mark = url.indexOf('?');
    this.method = method;
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.query = mark < 0 ? '' : url.slice(mark + 1);
    this.request = request;
  }

  get host(): string | undefined {
    return this.request.headers.host;
  }

  get peer(): string | undefined {
    return this.request.socket.remoteAddress;
  }

  header(name: string): string | undefined {
    const value = this.request.headers[name];
    return typeof value === 'object' ? value.join(', ') : value;
  }

  readBody(maxBytes: number): Promise<string> {
    const { request } = this;
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let size = 0;
      const stop = () => {
        request.off('data', onData).off('end', onEnd).pause();
        this.offLeave(onLeave);
      };
      const onData = (chunk: Buffer) => {
        size += chunk.length;
        chunks.push(chunk);
        if (size <= maxBytes) return;
        // To destroy the request would close the connection before the caller is told why.
        stop();
        reject(new BodyTooLarge(`The body is larger than ${maxBytes} bytes.`));
      };
      const onEnd = () => {
        this.offLeave(onLeave);
        resolve(textOf(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)));
      };
      const onLeave = () => {
        stop();
        reject(new DOMException('The caller left while sending.', 'AbortError'));
      };
      request.on('data', onData).on('end', onEnd);
      this.onLeave(onLeave);
    });
  }
}

/** Without the byte order mark that some clients put in front of their JSON. */
function textOf(bytes: Buffer): string {
  const text = bytes.toString();
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}
