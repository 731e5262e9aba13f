/**
 * Takes the place of `AbortController` (hooks.ts): that of the platform makes an exception with a stack at each abort,
 * which would be a quarter of the simulator's work. Only what src/tokens uses of it is here.
 */
const ABORTED = Object.assign(new Error('This operation was aborted'), { name: 'AbortError' });

export class LightAbortController {
  readonly signal = new LightAbortSignal();

  abort(): void {
    this.signal.abort();
  }
}

class LightAbortSignal {
  aborted = false;
  readonly reason = ABORTED;
  readonly #listeners = new Set<() => void>();

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }
}
