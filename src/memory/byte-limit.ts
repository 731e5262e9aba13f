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

  /** Whether so much has been counted although it was refused that there may be no memory for refusals. */
  get isFarExceeded(): boolean {
    return this.#bytes > this.#max * 1.5;
  }

  /**
   * Counts further bytes of a holder until `remove`, even if they are too many.
   *
   * @param size all bytes of this holder, with the further ones
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
 * The memory for what requests hold: their heads, bodies, operations and variables, from the socket until they are
 * answered, and the bodies that are made of them until the service has answered.
 */
export class RequestMemory extends ByteLimit {
  /** RATE_LIMITED */
  refusal(): GraphQLError {
    return codedError(
      'RATE_LIMITED',
      'Nothing was executed: the requests that wait in this gateway take all of its memory for requests. ' +
        `Try again in ${RETRY_SECONDS} s. Requests of less than 64 KiB are refused last.`,
      { extensions: { retryAfter: RETRY_SECONDS } },
    );
  }
}

const RETRY_SECONDS = 5;
