/**
 * Returns the headers that name this client, for every address of the service. The service documents `Api-User-Agent`
 * (interface, 4.3); services like it refuse requests without a `User-Agent` of the form `name/version (contact)`.
 */
export function agentHeaders(agent: string): Readonly<Record<string, string>> {
  return { 'user-agent': agent, 'api-user-agent': agent };
}

/**
 * Returns the service's id of a request, by which its support finds the request; undefined without a harmless one.
 *
 * @param secrets the tokens of the request and of its answer: an id that contains one is ignored
 */
export function requestIdOfService(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  ...secrets: readonly string[]
): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' &&
    HARMLESS.test(id) &&
    !secrets.some((secret) => id.includes(secret))
    ? id
    : undefined;
}

/** Short, and without characters that have a meaning in a log, a terminal or JSON. */
const HARMLESS = /^[\w.:/+=@-]{1,128}$/;

/** All three forms that a date may have in HTTP (RFC 9110, section 5.6.7) begin with the day of the week. */
const HTTP_DATE = /^(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d\d:\d\d:\d\d/i;

/**
 * Seconds that a Retry-After header says to wait (RFC 9110, section 10.2.3); negative for a date in the past,
 * undefined for anything else.
 *
 * @param now in ms
 */
export function parseRetryAfter(
  header: string | readonly string[] | undefined,
  now: number,
): number | undefined {
  if (typeof header !== 'string') return undefined;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Number(text);
  // Date.parse alone finds a date in nearly any text that contains a number.
  const date = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : (date - now) / 1000;
}

const DEFAULT_S = 60;
const LONGEST_S = 3600;

/** Returns the whole seconds after which to send a request again: 1 to 3600, and 60 if the header does not help. */
export function secondsToWait(header: string | readonly string[] | undefined, now: number): number {
  const seconds = parseRetryAfter(header, now);
  if (seconds === undefined || seconds < 0) return DEFAULT_S;
  return Math.min(Math.max(Math.ceil(seconds), 1), LONGEST_S);
}
