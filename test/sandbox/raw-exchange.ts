import { connect } from 'node:net';
import type { Sandbox } from '../../sandbox/sandbox.ts';

/** An exchange over a bare socket. Returns every byte that arrived until the other side closed it. */
export function rawExchange(
  sandbox: Sandbox,
  refreshToken: string,
): { received: Promise<string>; leave: () => void } {
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    refresh_token: refreshToken,
  }).toString();
  const { hostname, port } = new URL(sandbox.url);
  const socket = connect(Number(port), hostname);
  socket.setEncoding('utf8');
  let received = '';
  socket.on('data', (text: string) => (received += text));
  socket.write(
    [
      'POST /oauth/token HTTP/1.1',
      'host: sandbox',
      'connection: close',
      'content-type: application/x-www-form-urlencoded',
      `content-length: ${body.length}`,
      '',
      body,
    ].join('\r\n'),
  );
  return {
    received: new Promise((resolve, reject) => {
      socket.once('error', reject);
      socket.once('close', () => resolve(received));
    }),
    leave: () => socket.destroy(),
  };
}

export function outcomes(sandbox: Sandbox): string[] {
  return sandbox.exchanges.map(({ outcome }) => outcome);
}

/** The error of fetch when a connection was cut. */
export const cut = 'fetch failed';
