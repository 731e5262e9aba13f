import type { ByteLimit } from './byte-limit.ts';

/** A body was longer than allowed; what was read of it is dropped. */
export class BodyTooLarge extends Error {
  override name = 'BodyTooLarge';
}

/** There is no room for more of this body beside others; what was read of it is dropped. */
export class BodiesTooLarge extends Error {
  override name = 'BodiesTooLarge';
}

/** How much of bodies may be in memory while they arrive, bytes. */
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
    // Without the byte order mark that some servers put in front of their JSON.
    return new TextDecoder().decode(parts.bytes());
  } finally {
    parts.drop();
  }
}

/**
 * The parts of a body as they arrive, in memory that grows with their bytes and not with their number: a body may come in
 * parts of one byte, each an object of some hundred bytes. The first part, which is mostly the whole body, and large
 * parts are kept as they are. Others are copied into blocks.
 */
export class BodyParts {
  readonly #limits: BodyLimits;
  #parts: Uint8Array[] = [];
  #size = 0;
  #block: Uint8Array = NO_BLOCK;
  /** Where the bytes of the block begin that are not yet in `#parts`, and where they end. */
  #from = 0;
  #to = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /** @throws BodyTooLarge, BodiesTooLarge; TypeError if a caller of `fetch` gave something else than bytes */
  add(part: Uint8Array): void {
    // Its length would be no number, and so would the sum of all bodies from then on.
    if (!ArrayBuffer.isView(part)) throw new TypeError('A part of the body is not bytes.');
    const { byteLength } = part;
    this.#size += byteLength;
    const { each, all } = this.#limits;
    const mayGoOn = all?.add(byteLength, this.#size) ?? true;
    if (this.#size > each) throw new BodyTooLarge(`The body is larger than ${each} bytes.`);
    if (!mayGoOn) throw new BodiesTooLarge('There is no room for this body beside others.');
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

  /**
   * Returns the whole body, and keeps nothing of it. It counts as arriving until `drop`. The memory behind it may hold
   * more.
   */
  bytes(): Buffer {
    this.#endCopies();
    const parts = this.#parts;
    this.#forget();
    return parts.length === 1 ? asBuffer(parts[0]!) : joined(parts, this.#size);
  }

  /** Does the same, in memory that holds hardly anything else. */
  ownBytes(): Buffer {
    const bytes = this.bytes();
    return holdsLittleElse(bytes) ? bytes : joined([bytes], bytes.length);
  }

  /** To be called when the body was read, or does not go on. What has arrived of it is dropped. */
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
/** The size from which the object for a part counts for little, bytes. */
const LARGE = 1024;
/** Bytes of memory for each byte of a part. */
const MOST_BEHIND = 1.25;

/** A part keeps all memory behind it, for example the headers that arrived with it. */
function holdsLittleElse({ buffer, byteLength }: Uint8Array): boolean {
  return buffer.byteLength <= byteLength * MOST_BEHIND;
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
