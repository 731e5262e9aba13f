/** What the reader reports of each message, in order. */
interface MessageParts {
  head(text: string): void;
  body?(part: Buffer): void;
  end(): void;
}

/**
 * Reads HTTP/1.1 messages from a connection. The load and the upstream share 2 cores with what is measured, and
 * node:http would take most of their time.
 */
export function messageReader({ head, body, end }: MessageParts): (chunk: Buffer) => void {
  let rest: Buffer = EMPTY;
  let reading: 'head' | 'body' | 'chunk size' | 'chunk' | 'trailer' = 'head';
  let left = 0;

  return (chunk) => {
    let data = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    rest = EMPTY;
    while (data.length > 0) {
      if (reading === 'body' || reading === 'chunk') {
        const part = data.subarray(0, left);
        // The two bytes after a chunk are not part of the body.
        const inBody = reading === 'chunk' ? part.subarray(0, Math.max(0, left - 2)) : part;
        if (inBody.length > 0) body?.(inBody);
        left -= part.length;
        data = data.subarray(part.length);
        if (left > 0) continue;
        if (reading === 'body') finish();
        else reading = 'chunk size';
        continue;
      }
      const mark = reading === 'head' ? '\r\n\r\n' : '\r\n';
      const at = data.indexOf(mark);
      if (at < 0) {
        rest = data;
        return;
      }
      const text = data.toString('latin1', 0, at);
      data = data.subarray(at + mark.length);
      if (reading === 'head') readHead(text);
      else if (reading === 'trailer') finish();
      else readChunkSize(text);
    }
  };

  function readHead(text: string): void {
    head(text);
    if (/\r\ntransfer-encoding: *chunked/i.test(text)) {
      reading = 'chunk size';
      return;
    }
    left = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0);
    if (left === 0) finish();
    else reading = 'body';
  }

  function readChunkSize(text: string): void {
    const size = Number.parseInt(text, 16);
    left = size + 2;
    reading = size === 0 ? 'trailer' : 'chunk';
  }

  function finish(): void {
    reading = 'head';
    end();
  }
}

const EMPTY = Buffer.alloc(0);
