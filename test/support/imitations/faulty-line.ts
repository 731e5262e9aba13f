import { once } from 'node:events';
import { Agent, createServer, request as send, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Sandbox } from '../../../src/sandbox/sandbox.ts';

/** A line to a service with frequent faults, the same ones each time. */
export interface FaultyLine extends AsyncDisposable {
  readonly url: string;
  readonly tokenLink: string;
}

export interface FaultyLineOptions {
  /** After this number of requests there is an outage of `outageMs`. */
  readonly outageEvery: number;
  readonly outageMs: number;
  /** Longer than the gateway waits. */
  readonly hangMs: number;
}

/** Of each hundred requests to /graphql, those that are not answered as the service would. */
const FAULTS: Record<number, (response: ServerResponse) => void> = {
  7: (response) => response.destroy(),
  23: (response) => response.writeHead(503, { 'content-type': 'text/html' }).end('<html>'),
  41: (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
    response.write('{"data":{"persons":', () => response.destroy());
  },
  59: (response) => response.writeHead(429, { 'retry-after': '0' }).end(),
  77: (response) => response.writeHead(200).end('<html>'),
};
const HANGS = 500;

export async function startFaultyLine(
  sandbox: Sandbox,
  { outageEvery, outageMs, hangMs }: FaultyLineOptions,
): Promise<FaultyLine> {
  const agent = new Agent({ keepAlive: true });
  let count = 0;
  let downUntil = 0;
  const server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
    const passOn = () => {
      const { method, headers } = request;
      const onward = send(`${sandbox.url}${request.url}`, { agent, method, headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      });
      onward.on('error', () => response.destroy());
      response.once('close', () => onward.destroy());
      request.pipe(onward);
    };
    if (request.url !== '/graphql') return passOn();
    count += 1;
    const fault = FAULTS[count % 100];
    if (count % outageEvery === 0) downUntil = performance.now() + outageMs;
    if (performance.now() < downUntil) response.destroy();
    else if (count % HANGS === 0) setTimeout(passOn, hangMs);
    else if (fault) fault(response);
    else passOn();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    tokenLink: url + new URL(sandbox.tokenLink).pathname,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      agent.destroy();
      await once(server, 'close');
    },
  };
}
