/** A body was longer than allowed; what was read of it is dropped. */
export class BodyTooLarge extends Error {
  override name = 'BodyTooLarge';
}

/**
 * Reads a response body as UTF-8, never more than `limit` bytes of it.
 *
 * @throws BodyTooLarge as soon as the limit is passed; leaving the loop destroys the stream
 */
export async function readBody(body: AsyncIterable<Uint8Array>, limit: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > limit) throw new BodyTooLarge(`The body is larger than ${limit} bytes.`);
    chunks.push(chunk);
  }
  // Without the byte order mark that some servers put in front of their JSON.
  return new TextDecoder().decode(Buffer.concat(chunks, size));
}
