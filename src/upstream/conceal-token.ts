/**
 * The text of an answer without the token that its request was sent with, however often the service repeats it:
 * callers and logs get what is made of the answer.
 */
export function concealToken(text: string, token: string): string {
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
