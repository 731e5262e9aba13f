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

/** A proxy that opens tunnels, or refuses to with another status, until the test is finished. */
export async function startProxy(status = '200 OK'): Promise<ProxyServer> {
  const heads: string[] = [];
  const chunks: Buffer[] = [];
  const tunnel = (socket: Socket, head: string) => {
    const [, host, port] = /^CONNECT (\S+):(\d+) /.exec(head)!;
    const target = connect(Number(port), host!.replace(/^\[|\]$/g, ''));
    target.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    socket.on('data', (data: Buffer) => chunks.push(data)).on('close', () => target.destroy());
    socket.pipe(target).pipe(socket);
  };
  const serve = (socket: Socket) => {
    let head = '';
    socket.on('error', () => socket.destroy());
    socket.on('data', function read(chunk: Buffer) {
      head += chunk.toString('latin1');
      if (!head.endsWith('\r\n\r\n')) return;
      socket.off('data', read);
      heads.push(head);
      socket.write(`HTTP/1.1 ${status}\r\n\r\n`);
      if (status.startsWith('200')) tunnel(socket, head);
      else socket.end();
    });
  };
  return {
    host: `127.0.0.1:${await listenForTest(createServer(serve), '127.0.0.1')}`,
    heads,
    tunnelled: () => Buffer.concat(chunks).toString('latin1'),
  };
}
