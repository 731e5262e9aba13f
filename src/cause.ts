/** A caller's request, passed on to everything that is done for it. Only `telemetry` looks further into it. */
export interface Cause {
  readonly requestId: string;
}
