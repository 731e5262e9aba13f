/**
 * The request of a caller that something is done for, however many stages pass it on. What else telemetry keeps with
 * it, nobody but `watching` looks into.
 */
export interface Cause {
  readonly requestId: string;
}
