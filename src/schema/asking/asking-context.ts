import type { PageMeter } from '../../paging/price/page-meter.ts';
import type { RequestLoader } from './request-loader.ts';

/** What asking the upstream needs of whoever asks. */
export interface AskingContext {
  readonly requests: Pick<RequestLoader, 'load'>;
  /** Pays for mutations; queries are paid for where they are sent. */
  readonly pages?: Pick<PageMeter, 'pay'>;
  /** Names to the watch for whom this is asked. Nothing here looks into it. */
  readonly cause?: unknown;
}
