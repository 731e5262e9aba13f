/** The JSON of each part of a multipart/mixed response, as it arrives. */
export async function* jsonParts(response: Response): AsyncGenerator<unknown, void, undefined> {
  const type = response.headers.get('content-type') ?? '';
  const boundary = /^multipart\/mixed;.*boundary="?([^";]+)"?/i.exec(type)?.[1];
  if (!boundary || !response.body) {
    throw new Error(`It came as ${type}, not in parts: ${(await response.text()).slice(0, 500)}`);
  }
  const delimiter = `\r\n--${boundary}`;
  // The first delimiter is read as if a line ended before it.
  let text = '\r\n';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    let start = 0;
    for (;;) {
      const end = text.indexOf(delimiter, start);
      if (end < 0) break;
      const body = text.indexOf('\r\n\r\n', start);
      if (body >= 0 && body + 4 <= end) yield JSON.parse(text.slice(body + 4, end));
      start = end + delimiter.length;
    }
    text = text.slice(start);
  }
}
