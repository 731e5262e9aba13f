/** A body was longer than allowed; what was read of it is dropped. */
export class BodyTooLarge extends Error {
  override name = 'BodyTooLarge';
}

/**
 * Reads a response body as UTF-8, never more than `limit` bytes of it.
 *
 * @throws BodyTooLarge as soon as the limit is passed; leaving the loop destroys the stream
 */
export async function readBody(body: AsyncIterable<Uint8Array>, limit: number): Promise<string> {
  const parts = new BodyParts();
  for await (const part of body) {
    parts.add(part);
    if (parts.size > limit) throw new BodyTooLarge(`The body is larger than ${limit} bytes.`);
  }
  // Without the byte order mark that some servers put in front of their JSON.
  return new TextDecoder().decode(parts.join());
}

/**
 * The parts of a body as they arrive, in memory that grows with their bytes and not with their number: a body may come in
 * parts of one byte, each an object of some hundred bytes. The first part, which is mostly the whole body, and large
 * parts are kept as they are. Others are copied into blocks.
 */
export class BodyParts {
  #parts: Uint8Array[] = [];
  #size = 0;
  #block: Uint8Array = NO_BLOCK;
  /** Where the bytes of the block begin that are not yet in `#parts`, and where they end. */
  #from = 0;
  #to = 0;

  get size(): number {
    return this.#size;
  }

  add(part: Uint8Array): void {
    const { byteLength } = part;
    this.#size += byteLength;
    if (this.#size === byteLength || (byteLength >= LARGE && holdsLittleElse(part))) {
      this.#endCopies();
      this.#parts.push(part);
      return;
    }
    if (byteLength > this.#block.byteLength - this.#to) {
      this.#endCopies();
      this.#block = Buffer.allocUnsafeSlow(Math.max(byteLength, Math.min(this.#size, BLOCK)));
      this.#from = 0;
      this.#to = 0;
    }
    this.#block.set(part, this.#to);
    this.#to += byteLength;
  }

  /** Returns the whole body, in memory that holds hardly anything else, and keeps nothing of it. */
  join(): Buffer {
    this.#endCopies();
    const parts = this.#parts;
    this.#parts = [];
    this.#block = NO_BLOCK;
    this.#from = 0;
    this.#to = 0;
    const [first] = parts;
    if (parts.length === 1 && holdsLittleElse(first!)) return asBuffer(first!);
    const body = Buffer.allocUnsafeSlow(this.#size);
    let at = 0;
    for (const part of parts) {
      body.set(part, at);
      at += part.byteLength;
    }
    return body;
  }

  #endCopies(): void {
    if (this.#from === this.#to) return;
    this.#parts.push(this.#block.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}

const NO_BLOCK = new Uint8Array();
/** The size of the largest block, bytes. */
const BLOCK = 64 * 1024;
/** The size from which the object for a part counts for little, bytes. */
const LARGE = 1024;
/** Bytes of memory for each byte of a part. */
const MOST_BEHIND = 1.25;

/** A part keeps all memory behind it, for example the headers that arrived with it. */
function holdsLittleElse({ buffer, byteLength }: Uint8Array): boolean {
  return buffer.byteLength <= byteLength * MOST_BEHIND;
}

function asBuffer(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
