import { noRoom, type ByteLimit } from '../memory/byte-limit.ts';
import type { Exchange } from './exchange.ts';

/** Bounds what callers have in flight together: what is kept of all their requests has to fit into the heap. */
export class InFlight {
  readonly #max: number;
  readonly #bytes: ByteLimit;
  #count = 0;

  /** @param max requests that have arrived and are not yet answered @param bytes counts what they hold */
  constructor(max: number, bytes: ByteLimit) {
    this.#max = max;
    this.#bytes = bytes;
  }

  /**
   * Counts a request that has arrived, until it is answered.
   *
   * @throws RATE_LIMITED. It counts all the same: its refusal may wait for a reader
   */
  enter(exchange: Exchange): void {
    this.#count += 1;
    exchange.onEnd(() => (this.#count -= 1));
    if (this.#count > this.#max) throw noRoom();
  }

  /** Counts bytes that a request holds until it is answered. @throws RATE_LIMITED */
  hold(exchange: Exchange, bytes: number): void {
    const hasRoom = this.#bytes.add(bytes, bytes);
    exchange.onEnd(() => this.#bytes.remove(bytes));
    if (!hasRoom) throw noRoom();
  }
}
