/**
 * Counts the pages that callers spend in several processes, so that each caller has one minute in all of them together.
 */
export interface PageLedger {
  /**
   * Counts pages that were spent, whether the callers had them or not.
   *
   * @returns the pages that each of these callers has left of its minute, in the same order; negative if all processes
   *   together have let it spend more than it had
   * @throws if it is unknown whether they were counted. They must not be reported again
   */
  take(report: PageReport): Promise<readonly number[]>;
}

export interface PageReport {
  /** Each caller once. */
  readonly spent: readonly { readonly caller: string; readonly pages: number }[];
  /** When the first of these pages were spent: ms before the report is sent. */
  readonly ago: number;
}
