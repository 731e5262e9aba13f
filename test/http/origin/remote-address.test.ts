import { request } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codesOf } from '../../support/gateway/codes.ts';
import { ManualClock, MINUTE } from '../../support/random/manual-clock.ts';
import { startFront, type Front } from '../front.ts';

/** Gateways behind a proxy on this machine, whose callers have one page in a minute. */
let trusting: Front;
let careful: Front;
const clock = new ManualClock();
beforeAll(async () => {
  const config = { pagesPerMinute: 1 };
  trusting = await startFront({ clock, config: { ...config, trustProxy: true } });
  careful = await startFront({ clock, config: { ...config, trustProxy: false } });
});
afterAll(async () => {
  await trusting[Symbol.asyncDispose]();
  await careful[Symbol.asyncDispose]();
});

test.each<[string, string[], string[], boolean]>([
  ['one entry', ['10.1.2.3'], ['10.1.2.4'], false],
  ['the entry that the proxy wrote', ['1.1.1.1, 10.1.2.3'], ['2.2.2.2,10.1.2.3'], true],
  ['the last of several headers', ['1.1.1.1', '10.1.2.3'], ['10.1.2.3'], true],
  ['no port', ['10.1.2.3:5678'], ['10.1.2.3:99'], true],
  ['IPv6 in any form', ['[2001:DB8:0::1]:5678'], ['2001:db8::1'], true],
  ['an IPv6 network of 64 bits', ['2001:db8:1:2:3:4:5:6'], ['2001:DB8:1:2::7'], true],
  ['another IPv6 network', ['2001:db8:1:2::1'], ['2001:db8:1:3::1'], false],
  ['IPv4 in IPv6', ['::ffff:10.1.2.3'], ['10.1.2.3'], true],
  ['the proxy itself for an entry that is no address', ['10.1.2.3, unknown'], ['10.1.2.300'], true],
  ['the proxy itself without an entry', ['10.1.2.3,'], [], true],
])(
  'with TRUST_PROXY callers without credentials share a budget by %s',
  async (_, left, right, isShared) => {
    clock.jump(MINUTE);
    expect(await codes(trusting, left)).toEqual([]);
    expect(await codes(trusting, right)).toEqual(isShared ? ['RATE_LIMITED'] : []);
  },
);

test('without TRUST_PROXY all callers behind one proxy share its budget', async () => {
  clock.jump(MINUTE);
  expect(await codes(careful, ['10.1.2.3'])).toEqual([]);
  expect(await codes(careful, ['10.1.2.4'])).toEqual(['RATE_LIMITED']);
});

let asked = 0;

/** The codes of an operation that costs a page, sent with these headers of a proxy. */
async function codes({ url }: Front, forwarded: string[]): Promise<unknown[]> {
  asked += 1;
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': forwarded };
  const sent = request(`${url}/graphql`, { method: 'POST', headers, agent: false });
  const answer = new Promise<unknown>((resolve, reject) => {
    sent.on('response', (response) => resolve(json(response))).on('error', reject);
  });
  sent.end(JSON.stringify({ query: `{ candidates(first: 1) { items { a${asked}: id } } }` }));
  return codesOf((await answer) as object);
}
