/** The time, passed in so that tests can control it. All values are milliseconds. */
export interface Clock {
  /** Wall time. It can jump, so it is used only across restarts. */
  now(): number;
  /** Time since boot. Never jumps back, and includes suspends, unlike `performance.now()`. */
  elapsed(): number;
  /** Rejects when the signal is aborted. Does not keep the process alive. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
