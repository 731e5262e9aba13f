import type { GraphQLError } from 'graphql';
import { codedError } from '../errors.ts';

/** Limits the bytes that are in memory at the same time for one purpose, for example for bodies of requests. */
export class ByteLimit {
  readonly #max: number;
  #bytes = 0;

  /** @param max bytes; a quarter more for small holders, so that large ones do not displace them */
  constructor(max: number) {
    this.#max = max;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Counts more bytes of a holder, even above the limit. They count until `remove`.
   *
   * @param size all bytes of this holder, including these
   * @returns whether the holder may go on
   */
  add(bytes: number, size: number): boolean {
    this.#bytes += bytes;
    return this.#bytes <= this.#max * (size <= SMALL ? 1.25 : 1);
  }

  remove(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** Bytes. */
const SMALL = 64 * 1024;

/** Refuses a request for which there is no room beside others. */
export function noRoom(): GraphQLError {
  const headers = { 'retry-after': String(RETRY_SECONDS) };
  return codedError(
    'RATE_LIMITED',
    'Nothing was executed: this gateway has no room for more requests that wait. ' +
      `Try again in ${RETRY_SECONDS} s. Requests of less than 64 KiB are refused last.`,
    { extensions: { retryAfter: RETRY_SECONDS, http: { status: 429, headers } } },
  );
}

const RETRY_SECONDS = 5;

function tooLarge(maxBytes: number): GraphQLError {
  const message = `The request is larger than ${maxBytes} bytes. Send each value only once, in variables, or split the request; the operator of this gateway can raise MAX_BODY_BYTES.`;
  return codedError('BAD_USER_INPUT', message, { extensions: { http: { status: 413 } } });
}

/**
 * Collects the parts of a body in one buffer, which doubles when it is full. The parts themselves are not kept: a body
 * may arrive in parts of one byte, each an object of some hundred bytes that keeps what else was read with it.
 */
export class BodyParts {
  readonly #max: number;
  readonly #all: ByteLimit;
  #buffer: Buffer = EMPTY;
  #size = 0;

  /** @param max bytes of this body @param all counts all bodies */
  constructor(max: number, all: ByteLimit) {
    this.#max = max;
    this.#all = all;
  }

  /**
   * @throws BAD_USER_INPUT if the body is too large; RATE_LIMITED if other bodies use the memory that it needs;
   *   TypeError if a caller of `fetch` passed something other than bytes
   */
  add(part: Uint8Array): void {
    // Its length would be undefined, and would make the sum of all bodies NaN.
    if (!ArrayBuffer.isView(part)) throw new TypeError('A part of the body is not bytes.');
    const at = this.#size;
    this.#size += part.byteLength;
    const mayGoOn = this.#all.add(part.byteLength, this.#size);
    if (this.#size > this.#max) throw tooLarge(this.#max);
    if (!mayGoOn) throw noRoom();
    if (this.#size > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(this.#size, 2 * at));
      this.#buffer.copy(larger);
      this.#buffer = larger;
    }
    this.#buffer.set(part, at);
  }

  /** Bytes that have arrived, and count among those of all bodies. */
  get size(): number {
    return this.#size;
  }

  /** The whole body. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#size);
  }
}

const EMPTY = Buffer.alloc(0);
