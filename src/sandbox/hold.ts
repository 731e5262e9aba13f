export type HoldPoint = 'before' | 'after';

/** One request that stops on its way until it is let go, or its client leaves. */
export class Hold {
  readonly when: HoldPoint;
  readonly #arrival = Promise.withResolvers<void>();
  readonly #leave = Promise.withResolvers<void>();
  readonly #release = Promise.withResolvers<void>();

  constructor(when: HoldPoint) {
    this.when = when;
  }

  /** Resolves when the request has come to this point. */
  get arrived(): Promise<void> {
    return this.#arrival.promise;
  }

  /** Resolves when the client leaves while its request is held. */
  get left(): Promise<void> {
    return this.#leave.promise;
  }

  readonly release = (): void => this.#release.resolve();

  /** Rejects when the client has gone meanwhile. */
  async pass(gone: AbortSignal): Promise<void> {
    const leave = () => this.#leave.resolve();
    gone.addEventListener('abort', leave);
    if (gone.aborted) leave();
    this.#arrival.resolve();
    await Promise.race([this.#release.promise, this.#leave.promise]);
    // The signal also fires once an answer is sent, which is no leaving.
    gone.removeEventListener('abort', leave);
    gone.throwIfAborted();
  }
}
