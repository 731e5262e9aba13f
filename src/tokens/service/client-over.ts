import type { Socket } from 'node:net';
import { Client } from 'undici';

/** An HTTP client that has one connection, and never opens another. */
export interface OneConnection {
  readonly client: Client;
  close(): Promise<void>;
}

/** Has no time-outs of its own. */
export function clientOver(socket: Socket, { origin }: URL): OneConnection {
  let given = false;
  const client = new Client(origin, {
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (_options, callback) => {
      // Never within the call itself: the client is not ready for that, and waits for ever.
      setImmediate(() => {
        // A client whose connection ended before the request was written asks again and again.
        if (given || socket.destroyed)
          return callback(new Error('The connection is closed.'), null);
        given = true;
        callback(null, socket);
      });
    },
  });
  return {
    client,
    close: async () => {
      // A client that never sent anything has not adopted the socket.
      socket.destroy();
      await client.destroy();
    },
  };
}
