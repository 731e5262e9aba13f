import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { budgetOwner, remoteAddress } from '../../../src/http/budget-owner.ts';
import { Exchange } from '../../../src/http/exchange.ts';
import { Inbound } from '../../../src/http/inbound.ts';
import { listen } from '../../../src/http/listen.ts';
import { askAt } from '../../support/gateway/ask-at.ts';
import { startGatewayOverSandbox } from '../../support/gateway/gateway.ts';
import { codesOf } from '../../support/gateway/codes.ts';

test.each<[string, string[], string]>([
  ['no header', [], '127.0.0.1'],
  ['one entry', ['10.1.2.3'], '10.1.2.3'],
  ['several: the one that the proxy wrote', ['1.1.1.1, 8.8.8.8,10.1.2.3'], '10.1.2.3'],
  ['several headers', ['1.1.1.1', '10.1.2.3'], '10.1.2.3'],
  ['a port', ['10.1.2.3:5678'], '10.1.2.3'],
  ['IPv6', ['2001:DB8:0::1'], '2001:db8::1'],
  ['IPv6 with a port', ['[2001:db8::1]:5678'], '2001:db8::1'],
  ['IPv6 with a zone', ['fe80::1%eth0'], 'fe80::1'],
  ['IPv4 in IPv6', ['::ffff:10.1.2.3'], '10.1.2.3'],
  ['no address', ['10.1.2.3, unknown'], '127.0.0.1'],
  ['nothing behind the comma', ['10.1.2.3,'], '127.0.0.1'],
  ['what is hardly one', ['10.1.2.300'], '127.0.0.1'],
])('a trusted X-Forwarded-For is read: %s', async (_, headers, address) => {
  const seen = await addressesOf(headers.map((value) => `X-Forwarded-For: ${value}\r\n`).join(''));
  expect(seen).toEqual({ believed: address, direct: '127.0.0.1' });
});

test.each([
  ['believed: each has pages of his own', true, []],
  ['not believed: all that come by one connection share them', false, ['RATE_LIMITED']],
])('callers behind one proxy that is %s', async (_, trustProxy, codes) => {
  await using gateway = await startGatewayOverSandbox(
    {},
    { config: { trustProxy, pagesPerMinute: 1 } },
  );
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const askFor = (address: string) =>
    askAt(
      `${server.url}/graphql`,
      '{ persons { items { id } } }',
      {},
      { 'x-forwarded-for': address },
    );
  expect(codesOf(await askFor('1.1.1.1, 10.1.2.3'))).toEqual([]);
  expect(codesOf(await askFor('1.1.1.1, 10.1.2.4'))).toEqual(codes);
  expect(codesOf(await askFor('2.2.2.2, 10.1.2.3'))).toEqual(['RATE_LIMITED']);
});

test.each([
  [true, '192.0.2.1', '::ffff:192.0.2.1'],
  [true, '2001:db8:1:2:3:4:5:6', '2001:DB8:1:2::7'],
  [true, '2001:db8::1', '2001:0db8:0:0::2'],
  [true, 'fe80::1%eth0', 'fe80::2'],
  [false, '192.0.2.1', '192.0.2.2'],
  [false, '2001:db8:1:2::1', '2001:db8:1:3::1'],
  [false, '::1', '127.0.0.1'],
])('callers without credentials share a budget: %s for %s and %s', (shared, left, right) => {
  expect(budgetOf(left) === budgetOf(right)).toBe(shared);
});

/** The name of the budget of callers at this address. */
function budgetOf(peer: string): string {
  const request = new Request('http://localhost/graphql', { method: 'POST' });
  const inbound = Object.create(new Inbound(request), { peer: { value: peer } }) as Inbound;
  return budgetOwner(false)(new Exchange(inbound, { requestId: '', cause: undefined })).name;
}

async function addressesOf(headers: string): Promise<{ believed?: string; direct?: string }> {
  const server = await listen(
    (req, res) => {
      const inbound = new Inbound({ req, res });
      const believed = remoteAddress(inbound, true);
      res.end(JSON.stringify({ believed, direct: remoteAddress(inbound, false) }));
    },
    { host: '127.0.0.1', port: 0 },
  );
  onTestFinished(() => server.close());
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headers}\r\n`);
  return JSON.parse((await text(socket)).split('\r\n\r\n')[1]!);
}
