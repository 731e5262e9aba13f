const DEFAULT_S = 60;
const LONGEST_S = 3600;
const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;

/**
 * How many seconds a Retry-After asks for (RFC 9110, 10.2.3), within reason. One that says nothing, such as
 * a moment that has passed, is a minute.
 */
export function retryAfter(header: string | string[] | undefined, now: number): number {
  const text = String(header).trim();
  // Date.parse alone finds a date in nearly any text that holds a number.
  if (HTTP_DATE.test(text)) {
    const seconds = Math.ceil((Date.parse(text) - now) / 1000);
    return seconds > 0 ? Math.min(seconds, LONGEST_S) : DEFAULT_S;
  }
  return /^\d+$/.test(text) ? Math.min(Math.max(Number(text), 1), LONGEST_S) : DEFAULT_S;
}
