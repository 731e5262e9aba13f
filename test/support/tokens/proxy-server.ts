import { connect, createServer, type Socket } from 'node:net';
import { listenForTest } from '../test-server.ts';

export interface ProxyServer {
  /** Its address, into which a test can put a user and a password. */
  readonly host: string;
  /** The head of each request, as it arrived. */
  readonly heads: readonly string[];
  /** All bytes of the client in its tunnels. */
  readonly tunnelled: () => string;
}

/** The proxy's answer to CONNECT; `open` opens the tunnel. */
export type ProxyAnswer = (socket: Socket, open: () => void) => void;

/** A proxy that opens tunnels, until the test is finished. */
export async function startProxy({
  answer = (socket, open) => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    open();
  },
}: { answer?: ProxyAnswer } = {}): Promise<ProxyServer> {
  const heads: string[] = [];
  const chunks: Buffer[] = [];
  const serve = (socket: Socket) => {
    let head = '';
    socket.on('error', () => socket.destroy());
    socket.on('data', function read(chunk: Buffer) {
      head += chunk.toString('latin1');
      if (!head.endsWith('\r\n\r\n')) return;
      socket.off('data', read);
      heads.push(head);
      answer(socket, () => {
        const [, host, port] = /^CONNECT (\S+):(\d+) /.exec(head)!;
        const target = connect(Number(port), host!.replace(/^\[|\]$/g, ''));
        target.on('error', () => socket.destroy()).on('close', () => socket.destroy());
        socket.on('data', (data: Buffer) => chunks.push(data)).on('close', () => target.destroy());
        socket.pipe(target).pipe(socket);
      });
    });
  };
  return {
    host: `127.0.0.1:${await listenForTest(createServer(serve))}`,
    heads,
    tunnelled: () => Buffer.concat(chunks).toString('latin1'),
  };
}
