import type { RequestListener } from 'node:http';
import { connect, createServer, type AddressInfo } from 'node:net';
import type { JWK } from 'jose';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  COOLDOWN_MS,
  createKeySet,
  keysAt,
  KeysUnavailable,
  MAX_AGE_MS,
  MAX_WAITING,
  RETRY_MS,
} from '../../../src/http/auth/bearer-tokens.ts';
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

describe('the keys of an issuer', () => {
  test('the keys are fetched with the first token, once for all waiting callers', async () => {
    const { has, fetched } = world(() => ({ keys: [EC] }));
    expect(fetched()).toBe(0);
    expect(await Promise.all([has('ec'), has('ec'), has('no'), has('ec')])).toEqual([
      true,
      true,
      false,
      true,
    ]);
    expect(fetched()).toBe(1);
  });

  test('many unknown key ids cause one fetch in each cooldown', async () => {
    const { has, fetched, clock } = world(() => ({ keys: [EC] }));
    for (let round = 0; round < 4; round += 1) {
      const storm = Array.from({ length: 50 }, (_, index) => has(`made-up-${index}`));
      expect(new Set(await Promise.all(storm))).toEqual(new Set([false]));
      expect(await has('ec')).toBe(true);
      expect(fetched()).toBe(round + 1);
      clock.jump(COOLDOWN_MS - 1);
      expect(await has('made-up')).toBe(false);
      expect(fetched()).toBe(round + 1);
      clock.jump(1);
    }
  });

  test('a new key waits no longer than a cooldown, even among many unknown key ids', async () => {
    const keys = [EC];
    const { has, clock } = world(() => ({ keys }));
    expect(await has('ec')).toBe(true);
    keys.push(SECOND);
    expect(await has('second')).toBe(false);
    clock.jump(COOLDOWN_MS);
    expect(await has('second')).toBe(true);
  });

  test('a withdrawn key is refused once the key set has reached its age', async () => {
    let keys = [EC, SECOND];
    const { has, clock, fetched } = world(() => ({ keys }));
    expect(await has('second')).toBe(true);
    keys = [EC];
    clock.jump(MAX_AGE_MS - 1);
    expect(await has('second')).toBe(true);
    clock.jump(1);
    expect(await has('second')).toBe(false);
    expect(await has('ec')).toBe(true);
    expect(fetched()).toBe(2);
  });

  test.each<[string, unknown]>([
    ['is down', new Error('it is down')],
    ['says something else', 'Sorry'],
    ['says nothing', null],
    ['has no list', { keys: 'none' }],
    ['has a list of something else', { keys: [1] }],
  ])(
    'while the address %s, known keys remain valid, and callers do not wait for it again',
    async (_, answer) => {
      let reply: unknown = { keys: [EC] };
      const { has, clock, fetched, logged } = world(() => reply);
      expect(await has('ec')).toBe(true);
      reply = answer;
      for (let round = 0; round < 3; round += 1) {
        clock.jump(MAX_AGE_MS);
        expect([await has('ec'), await has('second')]).toEqual([true, false]);
        expect(fetched()).toBe(round + 2);
      }
      expect(logged).toHaveLength(3);
      expect(logged[0]).toMatchObject({ level: 40, msg: expect.stringContaining('AUTH_JWKS_URL') });

      const gate = Promise.withResolvers<unknown>();
      reply = gate.promise;
      clock.jump(RETRY_MS);
      expect(await has('ec')).toBe(true);
      gate.resolve({ keys: [SECOND] });
      await expect.poll(() => has('second'), { interval: 1 }).toBe(true);
      expect(await has('ec')).toBe(false);
    },
  );

  test('an address that failed at first is requested again soon, but not for each token', async () => {
    let reply: unknown = new Error('it is down');
    const { has, clock, fetched } = world(() => reply);
    expect(await Promise.all([has('ec'), has('ec')])).toEqual([false, false]);
    reply = { keys: [EC] };
    clock.jump(RETRY_MS - 1);
    expect(await has('ec')).toBe(false);
    expect(fetched()).toBe(1);
    clock.jump(1);
    expect(await has('ec')).toBe(true);
    expect(fetched()).toBe(2);
  });

  test('no more than a number of callers wait for a fetch, and one that leaves makes room', async () => {
    const gate = Promise.withResolvers<unknown>();
    const { keys } = world(() => gate.promise);
    const header = { alg: 'ES256', kid: 'ec' };
    const leaving = new AbortController();
    const left = keys.ready(header, leaving);
    const waiting = Array.from({ length: MAX_WAITING - 1 }, () => keys.ready(header));
    await expect(keys.ready(header)).rejects.toMatchObject({ retrySeconds: 5 });
    leaving.abort(new Error('The caller left.'));
    await expect(left).rejects.toThrow('The caller left.');
    waiting.push(keys.ready(header));
    await expect(keys.ready(header)).rejects.toThrow(KeysUnavailable);
    gate.resolve({ keys: [EC] });
    await Promise.all(waiting);
  });

  test('a token of an unknown key is neither valid nor invalid while the address fails', async () => {
    let reply: unknown = { keys: [EC] };
    const { keys, clock } = world(() => reply);
    const second = { alg: 'ES256', kid: 'second' };
    await keys.ready(second);
    reply = new Error('it is down');
    clock.jump(COOLDOWN_MS);
    await expect(keys.ready(second)).rejects.toMatchObject({ retrySeconds: 5 });
    clock.jump(RETRY_MS - 1_000);
    await expect(keys.ready(second)).rejects.toMatchObject({ retrySeconds: 1 });
    reply = { keys: [EC] };
    clock.jump(1_000);
    await keys.ready(second);
  });

  test('setting back the wall clock does not keep the keys for longer', async () => {
    let keys = [EC, SECOND];
    const { has, clock } = world(() => ({ keys }));
    expect(await has('second')).toBe(true);
    keys = [EC];
    clock.setWall(-10 * MAX_AGE_MS);
    clock.jump(MAX_AGE_MS);
    expect(await has('second')).toBe(false);
  });
});

describe('the address of the keys', () => {
  test('the request contains the query of the address, and nothing else', async () => {
    let received: unknown;
    issuer.answer(({ method, url, headers }, response) => {
      received = { method, url, headers };
      response.end(JSON.stringify({ keys: issuer.keys }));
    });
    expect(await keysAt(issuer.jwt.jwksUrl)()).toEqual({ keys: issuer.keys });
    const { host } = new URL(issuer.jwt.jwksUrl);
    expect(received).toEqual({
      method: 'GET',
      url: '/keys?of=all',
      headers: {
        accept: 'application/json, application/jwk-set+json',
        connection: expect.any(String),
        host,
      },
    });
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
    ['is empty', (_, response) => response.end(), 'the answer is not JSON'],
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
    ['never begins', () => {}, 'no complete answer within 0.05 s'],
    [
      'stops in the middle',
      (_, response) => void response.write('{"keys":'),
      'no complete answer within 0.05 s',
    ],
    ['breaks off', (_, response) => void response.destroy(), 'UND_ERR_SOCKET'],
  ])('an answer that %s is an error with a reason for the log', async (_, reply, reason) => {
    issuer.answer(reply);
    const before = issuer.requests;
    const timeoutMs = reason.includes('0.05') ? 50 : 5_000;
    await expect(keysAt(issuer.jwt.jwksUrl, { timeoutMs })()).rejects.toThrow(new Error(reason));
    expect(issuer.requests).toBe(before + 1);
  });

  test('an address on which no server listens is an error', async () => {
    const gone = await startIssuer();
    await gone[Symbol.asyncDispose]();
    await expect(keysAt(gone.jwt.jwksUrl)()).rejects.toThrow('ECONNREFUSED');
  });

  test('the request goes through the system’s proxy', async () => {
    issuer.answer((_, response) => response.end('{"keys":[]}'));
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
    expect(await keysAt(issuer.jwt.jwksUrl, { proxy: `http://127.0.0.1:${port}` })()).toEqual({
      keys: [],
    });
    expect(connects).toEqual([`CONNECT ${new URL(issuer.jwt.jwksUrl).host} HTTP/1.1`]);
  });
});

/** A key set whose address returns what `reply` returns, or throws the Error that it returns. */
function world(reply: () => unknown) {
  const clock = new ManualClock();
  const logged: object[] = [];
  let fetched = 0;
  const keys = createKeySet({
    fetchKeys: async () => {
      fetched += 1;
      const answer = await reply();
      if (answer instanceof Error) throw answer;
      return answer;
    },
    clock,
    log: pino({ level: 'trace' }, { write: (line: string) => void logged.push(JSON.parse(line)) }),
  });
  const has = async (kid: string) => {
    try {
      await keys.ready({ alg: 'ES256', kid });
      await keys.find({ alg: 'ES256', kid }, { payload: '', signature: '' });
      return true;
    } catch {
      return false;
    }
  };
  return { clock, logged, keys, has, fetched: () => fetched };
}
