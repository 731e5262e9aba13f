import type { GraphQLError } from 'graphql';
import { codedError } from '../errors.ts';

/** Limits the bytes that are in memory at the same time for one purpose, for example for requests. */
export class ByteLimit {
  readonly #max: number;
  #bytes = 0;

  /** @param max bytes; a quarter more for small holders */
  constructor(max: number) {
    this.#max = max;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether refused bytes exceed the limit by so much that memory for writing refusals may run out. */
  get isFarExceeded(): boolean {
    return this.#bytes > this.#max * 1.5;
  }

  /**
   * Counts more bytes of a holder, even above the limit. They count until `remove`.
   *
   * @param size all bytes of this holder, including these
   * @returns whether the holder may go on: all bytes fit, or it is small, or all others hold little
   */
  add(bytes: number, size: number): boolean {
    this.#bytes += bytes;
    if (this.#bytes <= this.#max) return true;
    if (size <= SMALL && this.#bytes <= this.#max * 1.25) return true;
    return this.#bytes - size <= this.#max / 8;
  }

  remove(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** Bytes. */
const SMALL = 64 * 1024;

/**
 * The memory that requests use: their headers, bodies, operations and variables until they are answered, and the bodies
 * of their upstream requests until the service has answered.
 */
export class RequestMemory extends ByteLimit {
  /** RATE_LIMITED */
  refusal(): GraphQLError {
    return codedError(
      'RATE_LIMITED',
      'Nothing was executed: the requests that wait in this gateway take all of its memory for requests. ' +
        `Try again in ${RETRY_SECONDS} s. Requests of less than 64 KiB are refused last.`,
      { extensions: { retryAfter: RETRY_SECONDS, http: TOO_MANY_REQUESTS } },
    );
  }
}

const RETRY_SECONDS = 5;
/** The connection ends, because the rest of the request is not read. */
const TOO_MANY_REQUESTS = {
  status: 429,
  headers: { 'retry-after': String(RETRY_SECONDS), connection: 'close' },
};

/** A body was longer than allowed. The bytes that were read are dropped. */
export class BodyTooLarge extends Error {
  override name = 'BodyTooLarge';
}

/** Other bodies use the memory that the rest of this one needs. The bytes that were read are dropped. */
export class BodiesTooLarge extends Error {
  override name = 'BodiesTooLarge';
}

/** The bytes of arriving bodies that may be in memory. */
export interface BodyLimits {
  readonly each: number;
  readonly all?: ByteLimit;
}

/**
 * Reads a body as UTF-8.
 *
 * @throws BodyTooLarge, BodiesTooLarge as soon as a limit is passed; leaving the loop destroys the stream
 */
export async function readBody(
  body: AsyncIterable<Uint8Array>,
  limits: BodyLimits,
): Promise<string> {
  const parts = new BodyParts(limits);
  try {
    for await (const part of body) parts.add(part);
    // TextDecoder removes the byte order mark that some servers put before their JSON.
    return new TextDecoder().decode(parts.bytes());
  } finally {
    parts.drop();
  }
}

/**
 * Collects the parts of a body. Its memory grows with the number of bytes, not of parts: a body may arrive in parts of
 * one byte, each an object of some hundred bytes. The first part, which is usually the whole body, and large parts are
 * kept as they are. Others are copied into blocks.
 */
export class BodyParts {
  readonly #limits: BodyLimits;
  #parts: Uint8Array[] = [];
  #size = 0;
  #block: Uint8Array = NO_BLOCK;
  /** The range of the block that is not yet in `#parts`. */
  #from = 0;
  #to = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /** @throws BodyTooLarge, BodiesTooLarge; TypeError if a caller of `fetch` passed something other than bytes */
  add(part: Uint8Array): void {
    // Its length would be undefined, and would make the sum of all bodies NaN.
    if (!ArrayBuffer.isView(part)) throw new TypeError('A part of the body is not bytes.');
    const { byteLength } = part;
    this.#size += byteLength;
    const { each, all } = this.#limits;
    const mayGoOn = all?.add(byteLength, this.#size) ?? true;
    if (this.#size > each) throw new BodyTooLarge(`The body is larger than ${each} bytes.`);
    if (!mayGoOn) throw new BodiesTooLarge('There is no room for this body beside others.');
    if (this.#size === byteLength || (byteLength >= LARGE && fillsBuffer(part))) {
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

  /**
   * Returns the whole body and forgets it. Its bytes count until `drop`. Its ArrayBuffer may be larger than the body.
   */
  bytes(): Buffer {
    this.#endCopies();
    const parts = this.#parts;
    this.#forget();
    return parts.length === 1 ? asBuffer(parts[0]!) : joined(parts, this.#size);
  }

  /** Returns the whole body like `bytes`, in an ArrayBuffer that is not much larger than the body. */
  compactBytes(): Buffer {
    const bytes = this.bytes();
    return fillsBuffer(bytes) ? bytes : joined([bytes], bytes.length);
  }

  /** Drops what has arrived. Call it when the body was read, or will not continue. */
  drop(): void {
    this.#limits.all?.remove(this.#size);
    this.#size = 0;
    this.#forget();
  }

  #forget(): void {
    this.#parts = [];
    this.#block = NO_BLOCK;
    this.#from = 0;
    this.#to = 0;
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
/** From this size, the overhead of a part's object does not matter, bytes. */
const LARGE = 1024;
/** The largest ratio of an ArrayBuffer's size to that of its part. */
const MAX_BUFFER_RATIO = 1.25;

/** Whether a part uses most of its ArrayBuffer. The rest stays in memory too, for example headers before a body. */
function fillsBuffer({ buffer, byteLength }: Uint8Array): boolean {
  return buffer.byteLength <= byteLength * MAX_BUFFER_RATIO;
}

function joined(parts: readonly Uint8Array[], size: number): Buffer {
  const body = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.byteLength;
  }
  return body;
}

function asBuffer(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
