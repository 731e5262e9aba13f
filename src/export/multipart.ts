const CRLF = '\r\n';

/**
 * Returns the bodies of the parts of a multipart answer (RFC 2046, 5.1) as they arrive. A part ends with the next
 * boundary, which cannot occur in JSON: there, a line break is escaped.
 *
 * @throws Error when the answer ends before its last part
 */
export async function* partsOf(
  body: AsyncIterable<Uint8Array>,
  contentType: string,
): AsyncGenerator<string, void, undefined> {
  const boundary = `${CRLF}--${/boundary="?([^";]+)/i.exec(contentType)?.[1] ?? '-'}`;
  // What comes before the first boundary is no part. It may begin the answer, without a line break before it.
  let text = CRLF;
  let isPart = false;
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    // A part may arrive in many pieces: only the new one, and what may be the start of a boundary, is searched.
    let searched = Math.max(0, text.length - boundary.length - 2);
    text += decoder.decode(chunk, { stream: true });
    for (;;) {
      const end = text.indexOf(boundary, searched);
      // The two characters behind a boundary tell whether it is the last one.
      if (end < 0 || text.length < end + boundary.length + 2) break;
      if (isPart) {
        const part = text.slice(0, end);
        yield part.slice(part.indexOf(CRLF + CRLF) + 2 * CRLF.length);
      }
      if (text.startsWith('--', end + boundary.length)) return;
      isPart = true;
      text = text.slice(end + boundary.length);
      searched = 0;
    }
  }
  throw new Error('The last boundary is missing.');
}
