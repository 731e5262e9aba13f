import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestGateway } from './gateway.ts';

export interface ListeningGateway extends AsyncDisposable {
  readonly url: string;
  /** Called before each piece of an answer is written, with its number since the last change of this function. */
  onPiece: (piece: number, response: ServerResponse) => void;
}

/** The gateway behind a port. */
export async function listeningGateway({ gateway }: TestGateway): Promise<ListeningGateway> {
  let onPiece = nothing;
  let pieces = 0;
  const server = createServer((request, response) => {
    const write = response.write.bind(response) as (chunk: unknown) => boolean;
    response.write = ((chunk: unknown) => {
      onPiece((pieces += 1), response);
      return write(chunk);
    }) as typeof response.write;
    gateway.handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    get onPiece() {
      return onPiece;
    },
    set onPiece(next) {
      pieces = 0;
      onPiece = next;
    },
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

const nothing: ListeningGateway['onPiece'] = () => {};
