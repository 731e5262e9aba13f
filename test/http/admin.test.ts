import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import pino from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { adminHandler } from '../../src/http/admin.ts';
import { adminHosts } from '../../src/http/hosts.ts';
import { listen } from '../../src/http/listen.ts';

test.each<[string, string, string[], string[]]>([
  ['on loopback', '127.0.0.1', ['localhost', '[::1]:9464', 'hr.example.com'], ['10.1.2.3']],
  ['in a network', '0.0.0.0', ['localhost', '10.1.2.3:9464', 'hr.example.com'], []],
  ['under its own name', 'metrics', ['metrics:9464', '10.1.2.3'], ['hr']],
])(
  'metrics are served only under a host name of this gateway: %s',
  async (_, host, ours, others) => {
    const isOurHost = adminHosts({ host, allowedHosts: ['hr.example.com'] });
    const metrics = { contentType: 'text/plain', text: () => Promise.resolve('version="1.2.3"') };
    const handler = adminHandler(metrics, isOurHost, pino({ level: 'silent' }));
    const server = await listen(handler, { host: '127.0.0.1', port: 0 });
    onTestFinished(() => server.close());
    for (const name of ours) {
      const { status, text: served } = await metricsAt(server.url, name);
      expect([name, status, served]).toEqual([name, 200, expect.stringContaining('1.2.3')]);
    }
    for (const name of [...others, 'evil.example', 'localhost.evil.example:9464']) {
      const { status, text: served } = await metricsAt(server.url, name);
      expect([name, status, served]).toEqual([name, 421, expect.stringContaining('ALLOWED_HOSTS')]);
    }
  },
);

test('metrics that cannot be read are a text that says where to look, and an error in the log', async () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line) => void lines.push(line) });
  const metrics = {
    contentType: 'text/plain',
    text: () => Promise.reject(new Error('a fault of the gateway')),
  };
  const handler = adminHandler(metrics, () => true, log);
  const server = await listen(handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  expect(await metricsAt(server.url, 'localhost')).toEqual({
    status: 500,
    text: expect.stringContaining('log'),
  });
  expect(lines).toEqual([expect.stringContaining('a fault of the gateway')]);
});

async function metricsAt(url: string, host: string): Promise<{ status: number; text: string }> {
  const response = await new Promise<IncomingMessage>((done, fail) => {
    get(`${url}/metrics`, { agent: false, headers: { host } }, done).once('error', fail);
  });
  return { status: response.statusCode!, text: await text(response) };
}
