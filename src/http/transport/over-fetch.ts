import type { Clock } from '../../clock.ts';
import { codedError } from '../../errors.ts';
import { BodiesTooLarge, BodyTooLarge, readBody, type BodyLimits } from '../../read-body.ts';
import { STALL_MS } from '../listen.ts';
import { isPiece, isStream, Exchange, type Body, type Piece, type Reply } from '../exchange.ts';

/** An exchange through `fetch`, without a socket. */
export class FetchExchange extends Exchange {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly peer = undefined;
  readonly #request: Request;
  readonly #hostOfUrl: string;
  readonly #callersSignal: AbortSignal;

  constructor(request: Request) {
    super();
    const { pathname, search, host } = new URL(request.url);
    this.method = request.method;
    this.path = pathname;
    this.query = search.slice(1);
    this.#request = request;
    this.#hostOfUrl = host;
    const { signal } = request;
    this.#callersSignal = signal;
    const leave = () => this.leave();
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave);
    // The signal may outlive many requests.
    this.onEnd(() => signal.removeEventListener('abort', leave));
  }

  /** The reason of the caller's signal; without one, the caller did not read the answer. */
  get leftBecause(): unknown {
    const { aborted, reason } = this.#callersSignal;
    return aborted ? reason : new DOMException(UNREAD, 'AbortError');
  }

  get host(): string {
    return this.header('host') ?? this.#hostOfUrl;
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined;
  }

  get headBytes(): number {
    let bytes = BYTES_OF_ANY + this.path.length + this.query.length;
    for (const [name, value] of this.#request.headers) bytes += name.length + value.length;
    return bytes;
  }

  dropHead(): void {}

  hangUp(): void {}

  readonly isBehindOthers = false;

  async readBody(limits: BodyLimits): Promise<string> {
    const { body } = this.#request;
    if (!body) return '';
    try {
      return await readBody(body, limits);
    } catch (error) {
      if (error instanceof BodyTooLarge || error instanceof BodiesTooLarge) throw error;
      if (this.hasLeft) throw new DOMException('The caller left while sending.', 'AbortError');
      throw codedError('BAD_USER_INPUT', UNREADABLE, { cause: error });
    }
  }
}

const BYTES_OF_ANY = 8 * 1024;

const UNREADABLE =
  'The body could not be read to its end. Send it again, in a stream of bytes that was not read before.';

const UNREAD = `The answer was ended because nobody read it for ${STALL_MS / 1000} s. Send the request again.`;

export interface FetchAnswering {
  readonly exchange: FetchExchange;
  readonly clock: Clock;
  /** Called when the caller has read a stream to its end. */
  readonly onEnd: () => void;
  /** Called with what a stream threw. Returns what its reader gets instead. */
  readonly onBreak: (error: unknown) => Error;
}

/** Makes the response of a reply. Of a stream, the exchange goes on until it is read, cancelled or broken. */
export function responseOf({ status, headers, body }: Reply, answering: FetchAnswering): Response {
  const content = isStream(body) ? streamOf(body, answering) : joined(body ?? '');
  return new Response(hasNoBody(status) ? null : content, { status, headers });
}

/** Statuses that must not have a body (RFC 9110, 15.3.5 and 15.4.5). */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 304;
}

function streamOf(
  body: AsyncIterable<Body>,
  { exchange, clock, onEnd, onBreak }: FetchAnswering,
): ReadableStream<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  const over = new AbortController();
  /** By `clock.elapsed`; undefined while the next part is being made. */
  let unreadSince: number | undefined = clock.elapsed();

  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        exchange.onLeave(() => {
          if (exchange.hasLeft) stop(controller, exchange.leftBecause);
        });
        endUnread().catch(() => {});
      },
      pull: async (controller) => {
        unreadSince = undefined;
        try {
          const { done, value } = await iterator.next();
          if (over.signal.aborted) return;
          if (!done) return controller.enqueue(joined(value));
          over.abort();
          controller.close();
          onEnd();
        } catch (error) {
          const shown = onBreak(error);
          stop(controller, shown);
        } finally {
          unreadSince = clock.elapsed();
        }
      },
      cancel: async () => {
        over.abort();
        // Before its first part is read, `return` alone would not even begin the iterator, and so end nothing.
        exchange.leave();
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );

  function stop(controller: ReadableStreamDefaultController, error: unknown): void {
    if (over.signal.aborted) return;
    over.abort();
    controller.error(error);
    iterator.return?.().catch(() => {});
  }

  /** Ends a stream that nobody reads: what it holds would be held for ever. Rejects when the stream is over. */
  async function endUnread(): Promise<void> {
    for (;;) {
      const now = clock.elapsed();
      const left = (unreadSince ?? now) + STALL_MS - now;
      if (left <= 0) return exchange.leave();
      await clock.sleep(left, over.signal);
    }
  }
}

function joined(body: Body): Buffer<ArrayBuffer> {
  if (isPiece(body)) return Buffer.from(body as Uint8Array);
  return Buffer.concat(body.map((piece: Piece) => Buffer.from(piece as Uint8Array)));
}
