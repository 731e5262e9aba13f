import { BodiesTooLarge, BodyTooLarge, readBody, type BodyLimits } from '../../read-body.ts';
import { isPiece, isStream, Exchange, type Body, type Piece, type Reply } from '../exchange.ts';

/** An exchange through `fetch`, without a socket. */
export class FetchExchange extends Exchange {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly peer = undefined;
  readonly #request: Request;
  readonly #hostOfUrl: string;

  constructor(request: Request) {
    super();
    const { pathname, search, host } = new URL(request.url);
    this.method = request.method;
    this.path = pathname;
    this.query = search.slice(1);
    this.#request = request;
    this.#hostOfUrl = host;
    const { signal } = request;
    if (signal.aborted) this.leave();
    else signal.addEventListener('abort', () => this.leave(), { once: true });
  }

  get host(): string {
    return this.header('host') ?? this.#hostOfUrl;
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined;
  }

  async readBody(limits: BodyLimits): Promise<string> {
    const { body } = this.#request;
    if (!body) return '';
    try {
      return await readBody(body, limits);
    } catch (error) {
      if (error instanceof BodyTooLarge || error instanceof BodiesTooLarge) throw error;
      throw new DOMException('The caller left while sending.', 'AbortError');
    }
  }
}

export function responseOf({ status, headers, body }: Reply, listeners: BodyListeners): Response {
  const content = isStream(body) ? streamOf(body, listeners) : joined(body ?? '');
  return new Response(hasNoBody(status) ? null : content, { status, headers });
}

export interface BodyListeners {
  /** Called with what the body threw. */
  readonly onBreak: (error: unknown) => void;
  /** Called when the caller wants no more of the body. */
  readonly onCancel: () => void;
}

/** Statuses that must not have a body (RFC 9110, 15.3.5 and 15.4.5). */
function hasNoBody(status: number): boolean {
  return status === 204 || status === 304;
}

function streamOf(
  body: AsyncIterable<Body>,
  { onBreak, onCancel }: BodyListeners,
): ReadableStream<Uint8Array> {
  const iterator = body[Symbol.asyncIterator]();
  let isCancelled = false;
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { done, value } = await iterator.next();
          if (isCancelled) return;
          if (done) controller.close();
          else controller.enqueue(joined(value));
        } catch (error) {
          if (isCancelled) return;
          onBreak(error);
          controller.error(error);
        }
      },
      cancel: async () => {
        isCancelled = true;
        // Before its first part is read, this alone would not even begin the iterator, and so end nothing.
        onCancel();
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

function joined(body: Body): Buffer<ArrayBuffer> {
  if (isPiece(body)) return Buffer.from(body as Uint8Array);
  return Buffer.concat(body.map((piece: Piece) => Buffer.from(piece as Uint8Array)));
}
