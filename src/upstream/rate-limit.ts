/**
 * Looks for a GraphQL error whose `extensions` say that the rate of requests is limited: the code contains THROTTL,
 * RATE_LIMIT or TOO_MANY, or they carry status 429 or a time to wait. Messages are not read: they are for people, in any
 * language.
 *
 * @param errors of an answer, in whatever form
 * @returns undefined if no error does; otherwise the seconds to wait, undefined if the service stated none
 */
export function limitIn(errors: unknown): { readonly seconds: number | undefined } | undefined {
  if (!Array.isArray(errors)) return undefined;
  const facts = errors.map((error) => membersOf(membersOf(error)['extensions']));
  const times = facts
    .map(({ retryAfter, retry_after: underscored }) => secondsOf(retryAfter ?? underscored))
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

/** Seconds to wait, as a Retry-After header states them, or a number; undefined for anything else, a date included. */
export function secondsOf(stated: unknown): number | undefined {
  const isText = typeof stated === 'string' && /^\d+$/.test(stated);
  const seconds = isText ? Number(stated) : stated;
  return typeof seconds === 'number' && seconds >= 0 ? seconds : undefined;
}
