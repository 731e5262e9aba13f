/**
 * The headers that say who asks, for every address of the service. The service documents `Api-User-Agent` (interface,
 * 4.3); services like it refuse requests without a `User-Agent` of the form `name/version (contact)`.
 */
export function agentHeaders(agent: string): Readonly<Record<string, string>> {
  return { 'user-agent': agent, 'api-user-agent': agent };
}

/**
 * The service's own id of a request, by which its support finds the request; undefined without a harmless one.
 *
 * @param secrets the tokens of the request and of its answer: an id that contains one of them is none
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
