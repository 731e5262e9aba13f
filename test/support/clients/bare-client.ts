import { connect, type Socket } from 'node:net';
import { expect } from 'vitest';

/** An HTTP client over a bare socket that reads only when a test says so. */
export function postBare({ url }: { url: string }, query: string, accept: string): Socket {
  const body = JSON.stringify({ query });
  const head = [
    'POST /graphql HTTP/1.1',
    'host: localhost',
    'connection: close',
    'content-type: application/json',
    `accept: ${accept}`,
    `content-length: ${body.length}`,
  ];
  return openBare({ url }, `${head.join('\r\n')}\r\n\r\n${body}`);
}

/** Opens a connection, and sends a text on it. */
export function openBare({ url }: { url: string }, text: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(text);
  // To send after the end of a connection fails, which tests do not care about.
  return socket.on('error', () => {});
}

/** Reads the head of an answer, and what came with it; everything if the connection ends before. */
export function headOf(socket: Socket): Promise<string> {
  return new Promise((done) => {
    let read = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      read += text;
      if (read.includes('\r\n\r\n')) done(read);
    });
    socket.once('close', () => done(read));
  });
}

/** Waits until a count has stayed the same for a number of checks. */
export async function standstill(count: () => number): Promise<void> {
  let last = -1;
  let looks = 0;
  const same = () => {
    const now = count();
    looks = now === last ? looks + 1 : 0;
    last = now;
    return looks;
  };
  await expect.poll(same, { interval: 20, timeout: 20_000 }).toBeGreaterThan(15);
}
