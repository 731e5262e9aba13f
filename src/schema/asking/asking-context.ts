import type { RequestLoader } from './request-loader.ts';

/** What asking the upstream needs of whoever asks. */
export interface AskingContext {
  readonly requests: Pick<RequestLoader, 'load'>;
}
