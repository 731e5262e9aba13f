import { readGrant, type Grant, type RawAnswer } from '../token-set.ts';
import { objectIn, pairNamedIn } from './answer-text.ts';

/** How one exchange of a refresh token ended. Only `uncertain` leaves doubt whether the token is spent. */
export type ExchangeOutcome =
  /** At least one token came. With one alone, the answer as it came: the other may be in it by another name. */
  | { kind: 'granted'; grant: Grant; answer?: RawAnswer }
  | { kind: 'invalid-grant' }
  /** Seconds, within reason. */
  | { kind: 'rate-limited'; retryAfter: number }
  | { kind: 'refused'; status: 401 | 403 }
  | { kind: 'unsent' }
  /** `why` is for people, and holds nothing secret. With what came, if anything did. */
  | { kind: 'uncertain'; why: string; answer?: RawAnswer };

/**
 * Judges an answer of the token endpoint (interface, 4.2). The status of a success is not shown there, so every
 * 2xx that begins with a token counts. Where another status names a pair, it is kept and not believed: until the
 * service takes one of its tokens, it may be an example on a page of errors.
 *
 * @param flaw why its end is missing
 * @param retryAfter what its Retry-After says, in seconds
 */
export function judgeAnswer(
  answer: RawAnswer,
  { flaw, retryAfter }: { flaw: string | undefined; retryAfter: number },
): ExchangeOutcome {
  const { status } = answer;
  const kept = answer.body.length > 0 && { answer };
  if (status >= 200 && status < 300) {
    const grant = readGrant(objectIn(answer));
    if (!grant) {
      const why = `a ${status} without a token (${flaw ?? 'its body was whole'})`;
      return { kind: 'uncertain', why, ...kept };
    }
    const isWhole = grant.accessToken !== undefined && grant.refreshToken !== undefined;
    return { kind: 'granted', grant, ...(!isWhole && kept) };
  }
  if (!pairNamedIn(answer)) {
    if (status === 400 && objectIn(answer)?.['error'] === 'invalid_grant') {
      return { kind: 'invalid-grant' };
    }
    if (status === 429) return { kind: 'rate-limited', retryAfter };
    if (status === 401 || status === 403) return { kind: 'refused', status };
  }
  return { kind: 'uncertain', why: `the answer had status ${status}`, ...kept };
}
