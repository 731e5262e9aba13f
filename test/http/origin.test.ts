import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import type { Config } from '../../src/config.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { codesOf } from '../support/gateway/codes.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { post } from '../support/clients/post.ts';
import { startFullFront } from '../support/gateway/front.ts';

const KEY = 'key-of-somebody';
const AUTH = { apiKeys: [entryFor(KEY, 'a', 'read')], jwt: undefined };
const ASK = post({ query: '{ __typename }' });

async function start(config: Partial<Config>) {
  const started = await startGatewayOverService({ persons: 1 }, { config });
  onTestFinished(() => started[Symbol.asyncDispose]());
  return started;
}

const OWN =
  'localhost LocalHost:4000 localhost. app.localhost:80 127.0.0.1:4000 127.1.2.3 [::1] [::1]:4000';
const FOREIGN =
  'evil.example evil.example:4000 localhost.evil.example notlocalhost 127.0.0.1.evil.example max_mustermann';
const ADDRESSES = '10.1.2.3 10.1.2.3:4000 [fd00::1]:4000';
const listed = { host: '0.0.0.0', allowedHosts: ['hr.example.com', '[fd00:0::1]'] };

test.each<[string, Partial<Config>, ours: string, others: string]>([
  ['on loopback: one of this machine', {}, OWN, `${FOREIGN} ${ADDRESSES}`],
  ['on loopback, with callers known', { auth: AUTH }, OWN, `${FOREIGN} ${ADDRESSES}`],
  ['on loopback of IPv6', { host: '::1' }, OWN, FOREIGN],
  [
    'on ALLOWED_HOSTS, and no other',
    listed,
    'hr.example.com HR.example.com:8080 hr.example.com. [fd00::1]:4000',
    `${FOREIGN} ${OWN} www.hr.example.com example.com 10.1.2.3`,
  ],
  ['for everybody in a network: an address', { host: '0.0.0.0' }, `${OWN} ${ADDRESSES}`, FOREIGN],
  [
    'for known callers in a network',
    { host: '::', auth: AUTH },
    `${OWN} ${ADDRESSES} ${FOREIGN}`,
    '',
  ],
])('accepted host names %s', async (_, config, ours, others) => {
  const { gateway, logged } = await start(config);
  const sendTo = (host: string) =>
    gateway.handler.fetch(`http://${host}/graphql`, as({ 'x-api-key': KEY }, ASK));
  for (const host of ours.split(' ')) {
    expect([host, (await sendTo(host)).status]).toEqual([host, 200]);
  }
  for (const host of others.split(' ').filter(Boolean)) {
    const refused = await sendTo(host);
    expect([host, refused.status]).toEqual([host, 421]);
    // Names of ALLOWED_HOSTS may be internal.
    expect(await refused.text()).not.toContain('hr.example.com');
  }
  const lines = logged.filter(({ msg, status }) => msg === 'request' && status === 421);
  if (others !== '')
    expect(lines).toContainEqual(
      expect.objectContaining({ host: 'evil.example', code: 'FORBIDDEN' }),
    );
  // What is not the name of a host may be anything that a caller wrote.
  expect(JSON.stringify(logged)).not.toContain('mustermann');
});

test.each<[string, string[], string[], isShared: boolean, trustProxy?: boolean]>([
  ['one entry', ['10.1.2.3'], ['10.1.2.4'], false],
  ['the entry that the proxy wrote', ['1.1.1.1, 10.1.2.3'], ['2.2.2.2,10.1.2.3'], true],
  ['the last of several headers', ['1.1.1.1', '10.1.2.3'], ['10.1.2.3'], true],
  ['IPv6', ['2001:db8::1'], ['2001:db8::2'], false],
  ['the proxy itself for no address', ['10.1.2.3, unknown'], ['10.1.2.300'], true],
  ['the proxy itself without an entry', ['10.1.2.3,'], [], true],
  ['the proxy itself without TRUST_PROXY', ['10.1.2.3'], ['10.1.2.4'], true, false],
])(
  'callers without credentials behind a proxy share a budget by %s',
  async (_, left, right, isShared, trustProxy = true) => {
    await using front = await startFullFront({ config: { pagesPerMinute: 1, trustProxy } });
    /** The codes of an operation that costs a page, sent with these headers of a proxy. */
    const codes = async (alias: string, forwarded: string[]) => {
      const headers = { 'content-type': 'application/json', 'x-forwarded-for': forwarded };
      const query = `{ candidates(first: 1) { items { ${alias}: id } } }`;
      const sent = { method: 'POST', headers, body: JSON.stringify({ query }) } as const;
      const { body } = await request(`${front.url}/graphql`, sent);
      return codesOf((await body.json()) as object);
    };
    expect(await codes('a', left)).toEqual([]);
    expect(await codes('b', right)).toEqual(isShared ? ['RATE_LIMITED'] : []);
  },
);

function as(more: Record<string, string>, init: RequestInit): RequestInit {
  return { ...init, headers: { ...(init.headers as Record<string, string>), ...more } };
}
