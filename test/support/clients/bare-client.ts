import { connect, type Socket } from 'node:net';
import { expect } from 'vitest';

/** An HTTP client over a bare socket that reads only when a test says so. */
export function postBare({ url }: { url: string }, query: string, accept: string): Socket {
  const { hostname, port } = new URL(url);
  const body = JSON.stringify({ query });
  const socket = connect(Number(port), hostname);
  const head = [
    'POST /graphql HTTP/1.1',
    'host: localhost',
    'connection: close',
    'content-type: application/json',
    `accept: ${accept}`,
    `content-length: ${body.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  return socket;
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
