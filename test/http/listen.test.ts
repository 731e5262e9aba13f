import { Agent, get, type ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';

test('closing waits for what is in flight, and keeps no connection for later', async () => {
  const asked = Promise.withResolvers<ServerResponse>();
  const server = await listen((_request, response) => asked.resolve(response), LOOPBACK);
  const agent = keepAlive();
  const reply = read(server.url, agent);
  const response = await asked.promise;
  const closing = server.close();
  await expect(fetch(server.url)).rejects.toThrow('fetch failed');
  response.end('whole');
  expect(await reply).toEqual({ body: 'whole', connection: 'close' });
  await closing;
});

test('closing does not wait for idle connections', async () => {
  const server = await listen((_request, response) => response.end('whole'), LOOPBACK);
  const agent = keepAlive();
  expect(await read(server.url, agent)).toEqual({ body: 'whole', connection: 'keep-alive' });
  await server.close();
});

test('an address is written as people open it', async () => {
  const server = await listen((_request, response) => response.end(), { host: '0.0.0.0', port: 0 });
  onTestFinished(() => server.close());
  expect(server.url).toMatch(/^http:\/\/localhost:\d+$/);
});

test.each([
  ['192.0.2.1', 'this machine has no such address. Set HOST'],
  ['no host at all', 'Set HOST'],
])('an address that cannot be used: %s', async (host, said) => {
  const listening = listen(() => {}, { host, port: 0 });
  await expect(listening).rejects.toThrow(`The gateway cannot listen on ${host}:0: `);
  await expect(listening).rejects.toThrow(said);
});

const LOOPBACK = { host: '127.0.0.1', port: 0 };

function keepAlive(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return agent;
}

function read(url: string, agent: Agent): Promise<{ body: string; connection?: string }> {
  return new Promise((done, fail) => {
    get(url, { agent }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      const { connection } = response.headers;
      response.once('end', () => done({ body, connection: connection! }));
    }).once('error', fail);
  });
}
