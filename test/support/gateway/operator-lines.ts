import { expect } from 'vitest';
import type { Program } from '../processes/process.ts';

interface Answer {
  readonly errors?: readonly {
    readonly message: string;
    readonly extensions?: Readonly<Record<string, unknown>> | undefined;
  }[];
}

/** Checks that the first error has only what callers may read, and returns the message of its log line. */
export function loggedFor(logged: readonly Record<string, unknown>[], answer: Answer): string {
  const id = idIn(answer);
  const line = logged.find(({ errorId }) => errorId === id) as { err: { message: string } };
  return line.err.message;
}

/** Checks that the first error has only what callers may read, and that the program logs the rest under its id. */
export async function expectPrintedFor(
  program: Pick<Program, 'printed'>,
  answer: Answer,
  words: string,
): Promise<void> {
  await program.printed(new RegExp(`"errorId":"${idIn(answer)}"`));
  await program.printed(new RegExp(words.replace(/[()[\].*+?|\\^$]/g, String.raw`\$&`)));
}

function idIn({ errors }: Answer): string {
  const [{ message, extensions } = { message: '' }] = errors ?? [];
  const { id } = extensions as { id: string };
  expect(message).toMatch(
    /The recruiting service is temporarily unavailable(, until the operator of this gateway has acted|\. Try again in \d+ s)\. /,
  );
  expect(message).toContain(`Report this id to the operator of the gateway: ${id}`);
  expect(extensions).toMatchObject({ retryAfter: expect.any(Number) });
  return id;
}
