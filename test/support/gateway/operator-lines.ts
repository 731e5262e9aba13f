import { expect } from 'vitest';

interface Answer {
  readonly errors?: readonly {
    readonly message: string;
    readonly extensions?: Readonly<Record<string, unknown>> | undefined;
  }[];
}

/** Checks that the first error has only what callers may read, and returns the message of its log line. */
export function loggedFor(logged: readonly Record<string, unknown>[], { errors }: Answer): string {
  const [{ message, extensions } = { message: '' }] = errors ?? [];
  const { id } = extensions as { id: string };
  expect(message).toMatch(
    /The recruiting service is temporarily unavailable(, until the operator of this gateway has acted|\. Try again in \d+ s)\. /,
  );
  expect(message).toContain(`Report this id to the operator of the gateway: ${id}`);
  expect(extensions).toMatchObject({ retryAfter: expect.any(Number) });
  const line = logged.find(
    ({ requestId, level, err }) => err && Number(level) > 30 && requestId === id,
  );
  return (line!['err'] as Error).message;
}
