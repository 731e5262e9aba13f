import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestGateway } from './gateway.ts';

export interface ListeningGateway extends AsyncDisposable {
  readonly url: string;
  /** Called for each request, with its number since the last change of this function. */
  onRequest: (request: number, response: ServerResponse) => void;
}

/** The gateway behind a port. */
export async function listeningGateway({ gateway }: TestGateway): Promise<ListeningGateway> {
  let onRequest = nothing;
  let requests = 0;
  const server = createServer((request, response) => {
    onRequest((requests += 1), response);
    gateway.handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    get onRequest() {
      return onRequest;
    },
    set onRequest(next) {
      requests = 0;
      onRequest = next;
    },
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

const nothing: ListeningGateway['onRequest'] = () => {};
