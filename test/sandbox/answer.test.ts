import { once } from 'node:events';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { send } from '../../sandbox/route-requests.ts';

test.each([
  ['its client leaves', 'leave'],
  ['the server closes', 'close'],
] as const)('an answer in the middle of which %s is not reported as sent', async (_what, how) => {
  const { response, ...end } = await requestThatReadsNothing();
  let isSent = false;
  const closed = once(response, 'close');
  // More than the buffers of both sides take.
  send(response, { status: 200, text: 'x'.repeat(64e6), whenSent: () => (isSent = true) });
  end[how]();
  await closed;
  await turn();

  expect(isSent).toBe(false);
});

async function requestThatReadsNothing(): Promise<{
  response: ServerResponse;
  leave: () => void;
  close: () => void;
}> {
  const server = createServer();
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {});
  const arrival = once(server, 'request');
  socket.pause().write('GET / HTTP/1.1\r\nhost: sandbox\r\n\r\n');
  const [, response] = (await arrival) as [unknown, ServerResponse];
  return {
    response,
    leave: () => socket.destroy(),
    close: () => server.closeAllConnections(),
  };
}
