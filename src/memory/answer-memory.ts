import { codedError } from '../errors.ts';

/** Bytes of an answer that are not counted: the buffers of a socket hold as much anyway. */
const UNCOUNTED = 65_536;
const RETRY_SECONDS = 5;

/** Limits the bytes that all answers together hold in memory, from when they are read until they are sent. */
export class AnswerMemory {
  readonly #max: number;
  /** The texts that answers share, each counted once. */
  readonly #shared = new Map<object, { readonly bytes: number; holders: number }>();
  #used = 0;

  /** @param max bytes */
  constructor(max: number) {
    this.#max = max;
  }

  /** For metrics. */
  get bytes(): number {
    return this.#used;
  }

  /** Begins to count the bytes of one answer. */
  open(): HeldMemory {
    const held = new Set<object>();
    let bytesHeld = 0;
    let uncounted = 0;
    return {
      hold: (text, bytes) => {
        if (held.has(text)) return;
        uncounted += bytes;
        if (uncounted <= UNCOUNTED) return;
        const known = this.#shared.get(text);
        const needed = known ? 0 : bytes;
        if (bytesHeld + bytes > this.#max) throw tooLarge(this.#max);
        if (this.#used + needed > this.#max) throw usedUp();
        held.add(text);
        bytesHeld += bytes;
        this.#used += needed;
        if (known) known.holders += 1;
        else this.#shared.set(text, { bytes, holders: 1 });
      },
      release: () => {
        for (const text of held) {
          const shared = this.#shared.get(text)!;
          shared.holders -= 1;
          if (shared.holders > 0) continue;
          this.#shared.delete(text);
          this.#used -= shared.bytes;
        }
        held.clear();
      },
    };
  }
}

export interface HeldMemory {
  /**
   * Counts a text until `release`. One that several answers share is counted once.
   *
   * @param text stands for it; equal for answers that share it
   * @throws OPERATION_TOO_COMPLEX for an answer that can never fit; RATE_LIMITED if there is no memory for it now
   */
  hold(text: object, bytes: number): void;
  release(): void;
}

function tooLarge(max: number): Error {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `The answer would be larger than ${max} bytes, which is all the memory for answers. Request fewer records or fields at a time, stream the list, or have the operator raise ANSWER_BYTES.`,
  );
}

function usedUp(): Error {
  return codedError(
    'RATE_LIMITED',
    `The memory for answers is used up by other answers now. Try again in ${RETRY_SECONDS} s, or request less; the operator can raise ANSWER_BYTES.`,
    { extensions: { retryAfter: RETRY_SECONDS, limit: 'ANSWER_BYTES' } },
  );
}
