import type { GraphQLError } from 'graphql';
import { ByteLimit } from './byte-limit.ts';
import { codedError } from './errors.ts';

/**
 * The memory for what requests hold: their heads, bodies, operations and variables, from the socket until they are
 * answered, and the bodies that are made of them until the service has answered.
 */
export class RequestMemory extends ByteLimit {
  /** RATE_LIMITED */
  refusal(): GraphQLError {
    return codedError(
      'RATE_LIMITED',
      'Nothing was executed: the requests that wait in this gateway take all of its memory for requests. ' +
        `Try again in ${RETRY_SECONDS} s. Requests of less than 64 KiB are refused last.`,
      { extensions: { retryAfter: RETRY_SECONDS } },
    );
  }
}

const RETRY_SECONDS = 5;
