/**
 * Tokens shorter than this are not looked for: nobody could tell one from a word of the data (`test` on a staging
 * service), and a secret of that length is none.
 */
const SHORTEST_SECRET = 16;

/** Whether the token may be in these bytes, as itself or behind escapes of JSON. */
export function mayHoldToken(bytes: Buffer, token: string): boolean {
  if (token.length < SHORTEST_SECRET) return false;
  if (bytes.includes(token)) return true;
  if (token.includes('/') && bytes.includes('\\/')) return true;
  for (let at = bytes.indexOf(ESCAPE); at >= 0; at = bytes.indexOf(ESCAPE, at + 1)) {
    const digit = bytes[at + ESCAPE.length] ?? 0;
    if (digit >= 50 && digit <= 55) return true;
  }
  return false;
}

/** Of a character of ASCII, when 2 to 7 follow. */
const ESCAPE = '\\u00';

/**
 * The text of an answer without the token that its request was sent with, however often the service repeats it:
 * callers and logs get what is made of the answer.
 */
export function concealToken(text: string, token: string): string {
  if (token.length < SHORTEST_SECRET) return text;
  // Most answers have no escapes of characters that a token is made of, and nothing to look for twice.
  const readable = /\\u00[2-7]|\\\//.test(text) ? withoutNeedlessEscapes(text) : text;
  return readable.includes(token) ? readable.replaceAll(token, '[removed]') : text;
}

/** The same JSON, with the characters of ASCII as themselves: a token has no others (RFC 6750, 2.1). */
function withoutNeedlessEscapes(json: string): string {
  return json.replaceAll(/\\(?:u00([2-7][\da-f])|[^])/gi, (escape, code?: string) => {
    if (escape === '\\/') return '/';
    const character = code === undefined ? escape : String.fromCharCode(Number.parseInt(code, 16));
    return character === '"' || character === '\\' ? escape : character;
  });
}
