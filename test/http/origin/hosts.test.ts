import { describe, expect, onTestFinished, test } from 'vitest';
import type { Config } from '../../../src/config.ts';
import { adminHosts } from '../../../src/http/hosts.ts';
import { entryFor } from '../../support/gateway/api-key.ts';
import { startGatewayOverSandbox } from '../../support/gateway/gateway.ts';

const KEY = 'key-of-somebody';
const AUTH = { apiKeys: [entryFor(KEY, 'a', 'read')], jwt: undefined };
const OWN = [
  'localhost',
  'LocalHost:4000',
  'localhost.',
  'app.localhost:80',
  '127.0.0.1:4000',
  '127.1.2.3',
  '[::1]',
  '[::1]:4000',
];
const FOREIGN = [
  'evil.example',
  'evil.example:4000',
  'localhost.evil.example',
  'notlocalhost',
  '127.0.0.1.evil.example',
];
const ADDRESSES = ['10.1.2.3', '10.1.2.3:4000', '[fd00::1]:4000'];

describe('the accepted host names', () => {
  test.each<[string, Partial<Config>, readonly string[], readonly string[]]>([
    ['on loopback: one of this machine', {}, OWN, [...FOREIGN, ...ADDRESSES]],
    ['on loopback, with callers known', { auth: AUTH }, OWN, [...FOREIGN, ...ADDRESSES]],
    ['an address of this machine in HOST', { host: '127.0.0.5' }, [...OWN, '127.0.0.5'], FOREIGN],
    ['on loopback of IPv6', { host: '::1' }, OWN, FOREIGN],
    [
      'on ALLOWED_HOSTS, and no other',
      { host: '0.0.0.0', allowedHosts: ['hr.example.com', '[fd00:0::1]'], auth: AUTH },
      ['hr.example.com', 'HR.example.com:8080', 'hr.example.com.', '[fd00::1]:4000'],
      [...FOREIGN, ...OWN, 'www.hr.example.com', 'example.com', '10.1.2.3'],
    ],
    [
      'for everybody in a network: an address, and the name in HOST',
      { host: 'gateway' },
      [...OWN, ...ADDRESSES, 'gateway:4000'],
      [...FOREIGN, 'gateway.evil.example'],
    ],
    [
      'for known callers in a network',
      { host: '::', auth: AUTH },
      [...OWN, ...ADDRESSES, ...FOREIGN],
      [],
    ],
  ])('%s', async (_, config, ours, others) => {
    const { statusOf } = await start(config);
    for (const host of ours) expect([host, await statusOf(host)]).toEqual([host, 200]);
    for (const host of others) expect([host, await statusOf(host)]).toEqual([host, 421]);
  });
});

test('the refusal names the setting to change, but not its value, and the log has the host name', async () => {
  const { gateway, logged } = await start({ allowedHosts: ['internal.example.com'] });
  for (const init of [
    { method: 'POST', headers: { 'content-type': 'application/json' }, body: ASK },
    { headers: { accept: 'text/html' } },
    { method: 'OPTIONS' },
  ]) {
    const response = await gateway.handler.fetch('http://evil.example/graphql', init);
    expect(response.status).toBe(421);
    const text = await response.text();
    expect(text).toContain('the operator of the gateway adds it to ALLOWED_HOSTS');
    expect(text).not.toContain('internal');
  }
  expect(logged.map(({ host }) => host)).toEqual(Array<string>(3).fill('evil.example'));
});

test('probes are answered under any host name, because they use IP addresses', async () => {
  const { gateway } = await start({ allowedHosts: ['internal.example.com'] });
  await expect.poll(async () => (await gateway.handler.fetch('http://a/ready')).status).toBe(200);
  for (const path of ['/health', '/ready']) {
    expect((await gateway.handler.fetch(`http://10.1.2.3:4000${path}`)).status).toBe(200);
  }
  expect((await gateway.handler.fetch('http://10.1.2.3/elsewhere')).status).toBe(421);
});

test('a warning is logged if every machine in a network can send requests, and only then', async () => {
  expect(await warned({ host: '0.0.0.0' })).toBe(true);
  expect(await warned({ host: '0.0.0.0', allowedHosts: ['hr.example.com'] })).toBe(false);
  expect(await warned({ host: '0.0.0.0', auth: AUTH })).toBe(false);
  expect(await warned({})).toBe(false);
});

test.each<[string, string, string[], string[]]>([
  ['on loopback', '127.0.0.1', ['localhost', '[::1]:9464', 'hr.example.com'], ['10.1.2.3']],
  ['in a network', '0.0.0.0', ['localhost', '10.1.2.3:9464', 'hr.example.com'], []],
  ['under its own name', 'metrics', ['metrics:9464', '10.1.2.3'], ['hr']],
])('metrics are served only under a host name of this gateway: %s', (_, host, ours, others) => {
  const isOurHost = adminHosts({ host, allowedHosts: ['hr.example.com'] });
  expect(ours.filter((name) => !isOurHost(name))).toEqual([]);
  const foreign = [...others, 'evil.example', 'localhost.evil.example:9464'];
  expect(foreign.filter((name) => isOurHost(name))).toEqual([]);
});

const ASK = JSON.stringify({ query: '{ __typename }' });

async function warned(config: Partial<Config>): Promise<boolean> {
  const { logged } = await start(config);
  return logged.some(({ msg }) => String(msg).includes('Until ALLOWED_HOSTS lists'));
}

async function start(config: Partial<Config>) {
  const started = await startGatewayOverSandbox({}, { config });
  onTestFinished(() => started[Symbol.asyncDispose]());
  const statusOf = async (host: string) => {
    const response = await started.gateway.handler.fetch(`http://${host}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': KEY },
      body: ASK,
    });
    return response.status;
  };
  return { ...started, statusOf };
}
