/** Identifies a caller's request to everything that is done for it. Only `telemetry` reads its contents. */
export interface Cause {
  readonly requestId: string;
}
