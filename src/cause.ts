/** Identifies a caller's request to everything that is done for it. Only `telemetry` reads and writes its contents. */
export interface Cause {
  readonly requestId: string;
  /** When it began, by `performance.now()`. */
  readonly begun: number;
  /** The name that the client says it has. */
  readonly client: string | undefined;
  upstreamRequests: number;
  pages: number;
}
