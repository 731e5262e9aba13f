import type { RequestListener } from 'node:http';
import { connect, createServer, type AddressInfo } from 'node:net';
import type { JWK } from 'jose';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { keySet, MAX_AGE_MS, RETRY_MS } from '../../../src/http/auth/key-set.ts';
import { recordingLog } from '../../support/gateway/recording-log.ts';
import { ManualClock } from '../../support/random/manual-clock.ts';
import { startIssuer, type Issuer } from './issuer.ts';

let issuer: Issuer;
let EC: JWK;
let SECOND: JWK;
beforeAll(async () => {
  issuer = await startIssuer();
  await issuer.addKey('ES256', 'second');
  [EC, SECOND] = issuer.keys as [JWK, JWK];
});
afterAll(() => issuer[Symbol.asyncDispose]());
beforeEach(() => issuer.answer(answering({ keys: [EC, SECOND] })));

function answering(content: unknown): RequestListener {
  return (_, response) => response.end(JSON.stringify(content));
}

test('the keys are fetched with the first token, once for all waiting callers, by their whole address', async () => {
  const { has, fetched } = keys();
  let asked: string | undefined;
  issuer.answer((request, response) => {
    asked = `${request.method} ${request.url}`;
    answering({ keys: [EC] })(request, response);
  });
  expect(fetched()).toBe(0);
  expect(await Promise.all([has('ec'), has('ec'), has('no')])).toEqual([true, true, false]);
  expect([fetched(), asked]).toEqual([1, 'GET /keys?of=all']);
});

test('many unknown key ids cause no further request', async () => {
  const { has, fetched } = keys();
  const storm = Array.from({ length: 50 }, (_, at) => has(`made-up-${at}`));
  expect(new Set(await Promise.all(storm))).toEqual(new Set([false]));
  expect(await has('ec')).toBe(true);
  expect(fetched()).toBe(1);
});

test('a withdrawn key is refused once the key set has reached its age', async () => {
  const { has, clock } = keys();
  expect(await has('second')).toBe(true);
  issuer.answer(answering({ keys: [EC] }));
  clock.jump(MAX_AGE_MS - 1);
  expect(await has('second')).toBe(true);
  clock.jump(1);
  expect([await has('second'), await has('ec')]).toEqual([false, true]);
});

test.each<[string, RequestListener, string]>([
  [
    'refuses',
    (_, response) => response.writeHead(500).end('secret'),
    'the server answered with status 500',
  ],
  [
    'points elsewhere',
    (_, response) => response.writeHead(302, { location: '/other' }).end(),
    'the server answered with status 302',
  ],
  ['is no JSON', (_, response) => response.end('<p>secret</p>'), 'the answer is not JSON'],
  ['has no list', answering({ keys: 'none' }), 'the answer is not a set of keys'],
  [
    'never ends',
    (_, response) => {
      const pour = () => {
        while (!response.destroyed && response.write(' '.repeat(64 * 1024)));
      };
      response.on('drain', pour);
      pour();
    },
    'the answer is larger than 262144 bytes',
  ],
  ['never begins', () => {}, 'no complete answer within 0.2 s'],
  ['breaks off', (_, response) => void response.destroy(), 'UND_ERR_SOCKET'],
])(
  'while the answer %s, known keys remain valid, others are unclear, and the log has the reason',
  async (_, reply, reason) => {
    const timeoutMs = reason.includes('0.2') ? 200 : undefined;
    const { has, unclear, clock, fetched, logged } = keys(timeoutMs);
    expect(await has('ec')).toBe(true);
    issuer.answer(reply);
    clock.jump(MAX_AGE_MS);
    expect(await has('ec')).toBe(true);
    expect(logged).toMatchObject([{ level: 40, reason }]);
    expect(await has('ec')).toBe(true);
    expect(fetched()).toBe(2);
    issuer.answer(answering({ keys: [SECOND] }));
    clock.jump(RETRY_MS);
    await expect.poll(() => has('ec')).toBe(false);
    expect(await has('second')).toBe(true);

    const fresh = keys(timeoutMs);
    issuer.answer(reply);
    const before = issuer.requests;
    expect(await fresh.unclear('ec')).toBe(5);
    fresh.clock.jump(RETRY_MS - 1_000);
    expect(await fresh.unclear('ec')).toBe(1);
    expect(issuer.requests).toBe(before + 1);
    issuer.answer(answering({ keys: [EC] }));
    fresh.clock.jump(1_000);
    expect([await fresh.has('ec'), await unclear('ec')]).toEqual([true, undefined]);
  },
);

test('the request goes through the system’s proxy', async () => {
  const connects: string[] = [];
  const proxy = createServer((socket) => {
    socket.once('data', (head) => {
      connects.push(head.toString().split('\r\n')[0]!);
      const to = connect(Number(new URL(issuer.jwt.jwksUrl).port), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        socket.pipe(to).pipe(socket);
      });
      for (const end of [socket, to]) end.on('error', () => {});
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  const { port } = proxy.address() as AddressInfo;
  expect(await keys(undefined, issuer, `http://127.0.0.1:${port}`).has('ec')).toBe(true);
  expect(connects).toEqual([`CONNECT ${new URL(issuer.jwt.jwksUrl).host} HTTP/1.1`]);
});

function keys(timeoutMs = 5_000, { jwt } = issuer, proxy?: string) {
  const clock = new ManualClock();
  const { log, logged } = recordingLog();
  const before = issuer.requests;
  const find = keySet(jwt.jwksUrl, { clock, log, timeoutMs, proxy });
  const look = (kid: string) =>
    Promise.resolve(find({ alg: 'ES256', kid }, { payload: '', signature: '' }));
  return {
    clock,
    logged,
    fetched: () => issuer.requests - before,
    has: (kid: string) =>
      look(kid).then(
        () => true,
        () => false,
      ),
    /** In how many seconds it may be clear whether there is such a key; undefined if it is clear. */
    unclear: (kid: string) =>
      look(kid).then(
        () => undefined,
        ({ retrySeconds }: { retrySeconds?: number }) => retrySeconds,
      ),
  };
}
