/**
 * Looks for a GraphQL error whose `extensions` say that the rate of requests is limited: the code contains THROTTL,
 * RATE_LIMIT or TOO_MANY, or they carry status 429 or a time to wait. Messages are not read: they are for people, in any
 * language.
 *
 * @param errors of an answer, in whatever form
 * @param now in ms
 * @returns undefined if no error does; otherwise the seconds to wait, undefined if the service stated none
 */
export function limitIn(
  errors: unknown,
  now: number,
): { readonly seconds: number | undefined } | undefined {
  if (!Array.isArray(errors)) return undefined;
  const facts = errors.map((error) => membersOf(membersOf(error)['extensions']));
  const times = facts
    .map(({ retryAfter, retry_after: underscored }) => secondsOf(retryAfter ?? underscored, now))
    .filter((time) => time !== undefined);
  if (times.length > 0) return { seconds: Math.max(...times) };
  return facts.some(isLimit) ? { seconds: undefined } : undefined;
}

type Members = Readonly<Record<string, unknown>>;

function isLimit({ code, status, statusCode, http }: Members): boolean {
  if (typeof code === 'string' && /THROTTL|RATE_LIMIT|TOO_MANY/i.test(code)) return true;
  return [code, status, statusCode, membersOf(http)['status']].some((fact) => Number(fact) === 429);
}

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}

/** All three forms that a date may have in HTTP (RFC 9110, section 5.6.7) begin with the day of the week. */
const HTTP_DATE = /^(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d\d:\d\d:\d\d/i;

/**
 * Seconds to wait, as a Retry-After header states them (RFC 9110, section 10.2.3), or a number; negative for a date in
 * the past, undefined for anything else.
 *
 * @param now in ms
 */
export function secondsOf(stated: unknown, now: number): number | undefined {
  if (typeof stated === 'number') return stated >= 0 ? stated : undefined;
  if (typeof stated !== 'string') return undefined;
  const text = stated.trim();
  if (/^\d+$/.test(text)) return Number(text);
  // Date.parse alone finds a date in nearly any text that contains a number.
  const date = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : (date - now) / 1000;
}
