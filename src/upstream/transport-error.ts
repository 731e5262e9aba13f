import { codedError } from '../errors.ts';
import type { UpstreamAnswer } from './read-response.ts';

const ENDED = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);
const TIMEOUTS = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'TimeoutError']);

/** What it means that no whole answer arrived. Addresses and raw messages stay in the cause, for the log. */
export function transportError(cause: unknown, timeoutMs: number): UpstreamAnswer {
  const { code, name } = cause as { code?: unknown; name?: unknown };
  const reason = typeof code === 'string' ? code : String(name);
  if (TIMEOUTS.has(reason) || TIMEOUTS.has(String(name))) {
    return {
      kind: 'bad',
      mayPass: false,
      error: codedError(
        'UPSTREAM_TIMEOUT',
        `The recruiting service did not answer within ${timeoutMs} ms. Ask for less at a time, or try again later.`,
        { cause },
      ),
    };
  }
  if (ENDED.has(reason)) {
    return {
      kind: 'bad',
      mayPass: false,
      error: codedError(
        'UPSTREAM_UNREACHABLE',
        'The gateway is stopping. Send the request again.',
        { cause },
      ),
    };
  }
  return {
    kind: 'bad',
    mayPass: true,
    error: codedError(
      'UPSTREAM_UNREACHABLE',
      `The recruiting service cannot be reached (${reason}). Try again later.`,
      { cause },
    ),
  };
}
