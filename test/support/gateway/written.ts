import assert from 'node:assert/strict';
import { afterAll } from 'vitest';

/**
 * Everything that the tests of a file read from the gateway: logs, answers, output of processes, metrics, the history
 * of the tokens. None of it may contain a token or a link.
 */
const written: string[] = [];

/** Matches the tokens and links of all test services, the API keys and tokens of callers, and the database's password. */
const SECRET =
  /sandbox-(?:access|refresh|link)-[\w-]{20,}|rsk_[\w-]{20,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}|planted-password/;

/** Records a text and returns it. */
export function wrote(text: string): string {
  written.push(text);
  return text;
}

afterAll(() => {
  const shown = written.flatMap((text) => {
    const match = SECRET.exec(text);
    return match ? [text.slice(Math.max(0, match.index - 200), match.index + 60)] : [];
  });
  assert.deepEqual(shown, []);
});

/** The sandbox prints its link, and `keys new` its key, on purpose. */
export function showsSecrets([command]: readonly string[]): boolean {
  return command === 'sandbox' || command === 'keys';
}
