import { createServer } from 'node:http';
import { connect } from 'node:net';
import { listenForTest } from '../listening.ts';

/** A proxy that opens tunnels, or refuses to with another status, until the test is finished. */
export async function startProxy(status = '200 OK') {
  const heads: string[] = [];
  const chunks: Buffer[] = [];
  const server = createServer().on('connect', ({ url, rawHeaders }, client) => {
    heads.push([`CONNECT ${url}`, ...rawHeaders].join('\n'));
    client.write(`HTTP/1.1 ${status}\r\n\r\n`);
    if (!status.startsWith('200')) return void client.end();
    const { hostname, port } = new URL(`tcp://${url}`);
    const target = connect(Number(port), hostname.replace(/^\[|\]$/g, ''));
    target.on('error', () => client.destroy()).on('close', () => client.destroy());
    client.on('error', () => client.destroy()).on('close', () => target.destroy());
    client.on('data', (data: Buffer) => chunks.push(data));
    client.pipe(target).pipe(client);
  });
  return {
    /** Its address, into which a test can put a user and a password. */
    host: `127.0.0.1:${await listenForTest(server, '127.0.0.1')}`,
    /** The method, the target and the headers of each request, as they arrived. */
    heads,
    /** All bytes of the client in its tunnels. */
    tunnelled: () => Buffer.concat(chunks).toString('latin1'),
  };
}
