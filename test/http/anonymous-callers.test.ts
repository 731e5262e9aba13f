import { request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { budgetOwner } from '../../src/http/budget-owner.ts';
import { Exchange } from '../../src/http/exchange.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { codesOf } from '../support/gateway/codes.ts';

test('callers without credentials have a budget for each address', async () => {
  const gateway = await startGatewayOverSandbox({}, { config: { pagesPerMinute: 2 } });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const ask = (from: string, first: number) =>
    askFrom(from, `${server.url}/graphql`, `{ persons(first: ${first}) { items { id } } }`);

  expect(codesOf(await ask('127.0.0.1', 1))).toEqual([]);
  expect(codesOf(await ask('127.0.0.1', 2))).toEqual([]);
  expect(codesOf(await ask('127.0.0.1', 3))).toEqual(['RATE_LIMITED']);
  expect(codesOf(await ask('127.0.0.2', 3))).toEqual([]);
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:DB8:1:2::7'],
  ['2001:db8::1', '2001:0db8:0:0::2'],
  ['fe80::1%eth0', 'fe80::2'],
])('addresses of one caller share a budget: %s and %s', (left, right) => {
  expect(nameAt(left)).toBe(nameAt(right));
});

test.each([
  ['192.0.2.1', '192.0.2.2'],
  ['::ffff:192.0.2.1', '::ffff:192.0.2.2'],
  ['2001:db8:1:2::1', '2001:db8:1:3::1'],
  ['::1', '127.0.0.1'],
])('addresses of two callers have two budgets: %s and %s', (left, right) => {
  expect(nameAt(left)).not.toBe(nameAt(right));
});

function nameAt(address: string): string {
  return budgetOwner(false)(exchangeFrom(address)).name;
}

function exchangeFrom(peer: string | undefined): Exchange {
  const inbound = {
    method: 'POST',
    path: '/graphql',
    query: '',
    host: 'localhost',
    peer,
    node: undefined,
    fetched: undefined,
    header: () => undefined,
  };
  return new Exchange(inbound, { requestId: '', cause: undefined });
}

function askFrom(
  localAddress: string,
  url: string,
  query: string,
): Promise<{ errors?: { extensions: Record<string, unknown> }[] }> {
  return new Promise((done, fail) => {
    const headers = { 'content-type': 'application/json' };
    request(url, { method: 'POST', localAddress, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => done(JSON.parse(text)));
    })
      .on('error', fail)
      .end(JSON.stringify({ query }));
  });
}
