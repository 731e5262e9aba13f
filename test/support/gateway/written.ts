import assert from 'node:assert/strict';
import { afterAll } from 'vitest';

/**
 * Everything that the tests of a file saw of the gateway: logs, answers, output of processes, metrics, the
 * history of the tokens. No token and no link may be in any of it.
 */
const written: string[] = [];

/** How the tokens and links of all the services of the tests look, and the API keys and tokens of callers. */
const SECRET =
  /(?:sandbox-(?:access|refresh|link)|planted)-[\w-]{20,}|rsk_[\w-]{20,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}/;

/** Gives back what it was given. */
export function wrote(text: string): string {
  written.push(text);
  return text;
}

export function secretsIn(texts: readonly string[]): string[] {
  return texts.flatMap((text) => {
    const found = SECRET.exec(text);
    return found ? [text.slice(Math.max(0, found.index - 200), found.index + 60)] : [];
  });
}

afterAll(() => {
  assert.deepEqual(secretsIn(written), []);
});
