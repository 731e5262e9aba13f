import { randomUUID } from 'node:crypto';

/** Short, and of nothing that a log, a terminal or a header could take for something else. */
const HARMLESS = /^[A-Za-z0-9._-]{1,64}$/;

/** What the caller calls the request, where that is harmless; else a new name. */
export function requestIdOf(headers: Headers): string {
  const given = headers.get('x-request-id');
  return given !== null && HARMLESS.test(given) ? given : randomUUID();
}
