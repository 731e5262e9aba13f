import { once } from 'node:events';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import type { GraphQLError } from 'graphql';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startService } from '../service/service.ts';
import type { TokenFault } from '../service/token-answers.ts';
import type { Rescue } from '../../src/tokens/store/rescue.ts';
import { reserveFile } from '../../src/tokens/store/sealed-file.ts';
import { tokenEndpoint } from '../../src/tokens/service/exchange.ts';
import type { NewClaim } from '../../src/tokens/store/token-store.ts';
import { readTokenSet } from '../../src/tokens/token-set.ts';
import { systemClock } from '../../src/clock.ts';
import { loggedFor } from '../support/gateway/operator-lines.ts';
import { DAY, HOUR, ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import { listenForTest, startServer } from '../support/test-server.ts';
import { startKept } from '../support/tokens/kept.ts';
import {
  codesOf,
  json,
  openTestRescue,
  pairOf,
  PERSON,
  reply,
  sentAgain,
  startScripted,
  watchStore,
} from '../support/tokens/tokens.ts';

const made = { access_token: 'made-up-access', refresh_token: 'made-up-refresh' };

describe('an answer of the token endpoint that gives no pair', () => {
  const unclear: [string, TokenFault][] = [
    ['a 200 with two empty tokens', reply(200, { access_token: '', refresh_token: ' ' })],
    ['a 200 with tokens that are no text', reply(200, { access_token: 1, refresh_token: {} })],
    ['a 200 with null', reply(200, null)],
    ['a 200 with a list', reply(200, [made])],
    ['a 200 with nothing', reply(200, '')],
    ['a 200 with HTML', reply(200, '<html>Maintenance</html>', { 'content-type': 'text/html' })],
    ['a 200 with half of its JSON', reply(200, JSON.stringify(made).slice(0, 40))],
    ['a 200 with a pair behind 64 KiB', reply(200, { padding: 'x'.repeat(65_536), ...made })],
    ['a 204', reply(204, '')],
    ['a 400 with HTML', reply(400, '<html>Bad Request</html>')],
    ['a 400 with another error', reply(400, { error: 'unsupported_grant_type' })],
    ['a 404', reply(404, { errors: [] })],
    ['a 500', reply(500, 'Oops')],
    ['a 502 with HTML', reply(502, '<html>Bad Gateway</html>')],
    ['a 503 that names a pair', reply(503, made)],
    ['a connection cut when the request was read', 'drop-before'],
    ['a connection cut within the headers', raw('HTTP/1.1 200 OK\r\ncontent-ty')],
    [
      'a connection cut within the body',
      writing((response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
        response.write('{"access_token":"made-', () => response.destroy());
      }),
    ],
    ['something that is not HTTP', raw('220 smtp.test ESMTP\r\n')],
  ];

  test.each(unclear)(
    'an answer without a pair (%s) loses nothing, is a coded error, causes no loop, and passes',
    async (_, answer) => {
      await bearIt(answer, ({ errors }) =>
        expect(codesOf({ errors })).toEqual(['UPSTREAM_UNREACHABLE']),
      );
    },
  );

  test.each([401, 403])(
    'an answer with status %i loses nothing, and the log says what to check',
    async (status) => {
      await bearIt(reply(status, { error: 'invalid_client' }), ({ errors, logged }) => {
        expect(codesOf({ errors })).toEqual(['UPSTREAM_UNAUTHORIZED']);
        expect(loggedFor(logged, { errors })).toMatch(/RECRUITING_URL/);
      });
    },
  );

  test.each([
    ['30', 30],
    ['0', 1],
    ['', 60],
    ['soon', 60],
    ['-5', 60],
    ['NaN', 60],
    ['999999999999', 3600],
    ['Wed, 21 Oct 2015 07:28:00 GMT', 60],
    [undefined, 60],
  ])('a 429 with Retry-After %s is obeyed within reasonable limits', async (header, seconds) => {
    await bearIt(
      reply(429, 'Slow down', header === undefined ? {} : { 'retry-after': header }),
      ({ errors }) => {
        expect(codesOf({ errors })).toEqual(['UPSTREAM_RATE_LIMITED']);
        expect(errors[0]!.extensions['retryAfter']).toBe(seconds);
      },
    );
  });

  test('nothing is sent before the time of a 429 has passed, however many callers wait', async () => {
    const { service, ask, clock } = await ready();
    service.tokenAnswers.every(1, reply(429, '', { 'retry-after': '30' }));
    service.expire();
    const before = service.exchanges.length;
    for (let request = 0; request < 10; request += 1) await ask(PERSON);
    clock.jump(29 * SECOND);
    await ask(PERSON);
    expect(service.exchanges).toHaveLength(before + 1);
    service.tokenAnswers.clear();
    clock.jump(2 * SECOND);
    expect(codesOf(await ask(PERSON))).toEqual([]);
  });

  test.each([301, 302, 307, 308])(
    'a redirect (%i) to another host is not followed: nothing arrives there',
    async (status) => {
      let arrived = 0;
      const elsewhere = await startServer((_, response) => {
        arrived += 1;
        json(response, 200, made);
      });
      await bearIt(reply(status, '', { location: `${elsewhere}/oauth/token` }), ({ errors }) =>
        expect(codesOf({ errors })).toEqual(['UPSTREAM_UNREACHABLE']),
      );
      expect(arrived).toBe(0);
    },
  );

  test('a body of 100 MB is not read to its end', async () => {
    let written = 0;
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    const flood = writing(async (response) => {
      written = 0;
      response.writeHead(200, { 'content-type': 'application/json' });
      const gone = once(response, 'close');
      while (written < 100 * chunk.length && !response.destroyed) {
        written += chunk.length;
        if (!response.write(chunk)) await Promise.race([once(response, 'drain'), gone]);
      }
    });
    await bearIt(flood, ({ errors }) =>
      expect(codesOf({ errors })).toEqual(['UPSTREAM_UNREACHABLE']),
    );
    expect(written).toBeGreaterThan(0);
    expect(written).toBeLessThan(32 * chunk.length);
  });
});

describe('a pair with an odd life', () => {
  test.each([
    [undefined],
    [null],
    [0],
    [-1],
    [0.001],
    ['86400'],
    ['soon'],
    [{}],
    [true],
    [1e15],
    [1e308],
  ])('a pair with expires_in %j is kept, and refreshed at sensible times', async (life) => {
    const { service, ask, clock, store } = await ready();
    service.tokenAnswers.every(1, pairWith({ expires_in: life }));
    service.expire();
    expect(codesOf(await ask(PERSON))).toEqual([]);
    const before = service.exchanges.length;
    expect(await store.read()).toMatchObject({ generation: 3, lost: false });

    await clock.pass(2 * DAY);
    expect(service.exchanges.length - before).toBeLessThanOrEqual(3);
    expect(codesOf(await ask(PERSON))).toEqual([]);
    service.expire();
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(await store.read()).toMatchObject({ lost: false });
  });

  test.each([[1], [0], [-1], [120], [599], ['1'], [null]])(
    'a pair with refresh_token_expires_in %j is kept, without endless refreshes and without a loss',
    async (life) => {
      const { service, ask, clock, store } = await ready();
      service.tokenAnswers.every(1, pairWith({ refresh_token_expires_in: life }));
      service.expire();
      expect(codesOf(await ask(PERSON))).toEqual([]);
      const before = service.exchanges.length;
      await clock.pass(2 * DAY);
      expect(service.exchanges.length - before).toBeLessThanOrEqual(3);
      expect(codesOf(await ask(PERSON))).toEqual([]);
      service.expire();
      expect(codesOf(await ask(PERSON))).toEqual([]);
      expect(await store.read()).toMatchObject({ lost: false });
    },
  );

  test('a refresh_token_expires_in of 600 is believed: the pair is refreshed before its refresh token expires', async () => {
    const { service, ask, clock, store } = await ready();
    service.tokenAnswers.every(1, pairWith({ refresh_token_expires_in: 600 }));
    service.expire();
    await ask(PERSON);
    const before = service.exchanges.length;
    await clock.pass(HOUR);
    expect(service.exchanges.length - before).toBeGreaterThanOrEqual(8);
    expect(await store.read()).toMatchObject({ lost: false });
  });

  test('the same refresh token twice in a row is kept, without a loop', async () => {
    const { service, ask, clock, store } = await ready();
    const { refreshToken } = (await store.read())!.pair;
    const same = pairWith({ refresh_token: refreshToken });
    service.tokenAnswers.next(same, same);
    service.expire();
    const before = service.exchanges.length;
    expect(codesOf(await ask(PERSON))).toEqual([]);
    await clock.pass(0.5 * DAY);
    expect(service.exchanges).toHaveLength(before + 1);
    expect(await store.read()).toMatchObject({
      generation: 3,
      lost: false,
      pair: { refreshToken },
    });
  });
});

describe('a token endpoint that cannot be reached', () => {
  test('an unreachable token endpoint leaves no claim, is tried again with growing pauses, and works when it is back', async () => {
    const { service, ask, clock, logged, store } = await ready();
    await service.down();
    await clock.pass(0.7 * DAY);
    expect(await store.read()).toMatchObject({ generation: 2, claim: null });
    const failures = logged.filter(({ msg }) => msg === 'the access token could not be refreshed');
    expect(failures.length).toBeGreaterThan(3);
    expect(failures.length).toBeLessThan(60);
    expect(JSON.stringify(failures)).toContain('ECONNREFUSED');

    await service.up();
    await clock.pass(10 * MINUTE);
    expect(await store.read()).toMatchObject({ generation: 3 });
    expect(codesOf(await ask(PERSON))).toEqual([]);
  });

  test('a failing TLS connection leaves no claim, and no token is sent', async () => {
    const service = await startScripted();
    const baseUrl = service.url.replace('http:', 'https:');
    const store = watchStore();
    const clock = new ManualClock();
    const set = { baseUrl, pair: pairOf('kept'), at: clock.now(), replica: 'test', after: null };
    await store.import(set);
    const { logged } = await startKept({ url: baseUrl }, { store, clock });
    await clock.pass(HOUR);
    expect(await store.read()).toMatchObject({ generation: 1, claim: null, lost: false });
    expect(logged).toContainEqual(
      expect.objectContaining({ msg: 'the access token could not be refreshed' }),
    );
    expect(service.exchanges).toEqual([]);
  });

  test('a connection that ends before the request ends the exchange, and no token is sent', async () => {
    let received = 0;
    const closed = Promise.withResolvers<void>();
    const server = createServer((socket) => {
      socket.on('data', ({ length }) => (received += length)).on('close', closed.resolve);
      socket.end();
    });
    const baseUrl = `http://127.0.0.1:${await listenForTest(server, '127.0.0.1')}`;
    const service = { baseUrl, agent: 'test', clock: systemClock, proxy: undefined };
    const endpoint = await tokenEndpoint(service)();
    await closed.promise;
    const { kind } = await endpoint.exchange('refresh', () => true);
    await endpoint.close();
    // The kernel decides which of the two ends first.
    expect(['unsent', 'uncertain']).toContain(kind);
    expect(received).toBe(0);
  });

  test('a token endpoint that is available only over IPv6 is reached', async ({ skip }) => {
    const sandbox = await startService();
    onTestFinished(() => sandbox.close());
    const server = createHttpServer((request, response) => void sandbox.answer(request, response));
    const port = await listenForTest(server, '::1').catch(() => undefined);
    if (port === undefined) return skip('no IPv6 here');
    const url = `http://[::1]:${port}`;
    const tokenLink = url + new URL(sandbox.tokenLink).pathname;
    const { ask, clock } = await startKept({ url, tokenLink });
    await clock.asleep();
    expect(sandbox.stats.refreshes).toBe(1);
    expect(codesOf(await ask(PERSON))).toEqual([]);
  });
});

test.each([
  ['are', '}}', 2_592_000],
  ['would be, if its answer were not cut', '', 10_368_000],
])('a pair in a 503 is used with the lifetimes that %s named with it', async (_name, end, life) => {
  const { rescue } = openTestRescue();
  const { service, ask, store } = await ready(rescue);
  service.tokenAnswers.next((pair) => {
    const { access_token, refresh_token } = JSON.parse(pair) as Record<string, unknown>;
    const lives = { expires_in: 7_200, refresh_token_expires_in: 2_592_000 };
    const text = JSON.stringify({ upstream: { access_token, refresh_token, ...lives } });
    return { status: 503, body: text.slice(0, -2) + end };
  });
  service.expire();
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(await store.read()).toMatchObject({
    generation: 3,
    pair: { expiresIn: 7_200, refreshTokenExpiresIn: life },
  });
  expect(service.exchanges).toHaveLength(2);
});

test('a pair that reaches the rescue file of another process after the claim is used, and nothing is sent again', async () => {
  const { rescue, ...ours } = openTestRescue();
  const { service, ask, store, clock } = await ready(rescue);
  let issued = '';
  service.tokenAnswers.next((pair) => {
    issued = pair;
    return { status: 502, body: 'Bad Gateway' };
  });
  const { claim } = store;
  const attempts: string[] = [];
  store.claim = async (claimed) => {
    attempts.push(claimed.attempt);
    const result = await claim(claimed);
    // The process of the first attempt was suspended, and reads its answer only now.
    if (attempts.length === 2) leavePair(claimed, attempts[0]!);
    return result;
  };
  service.expire();
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(attempts).toHaveLength(2);
  expect(service.exchanges).toHaveLength(2);
  expect(await store.read()).toMatchObject({ generation: 3, claim: null, unanswered: 0 });

  function leavePair({ set, generation }: NewClaim, attempt: string): void {
    const pair = readTokenSet(JSON.parse(issued))!;
    const owner = { ...ours.owner, pid: 4_000_000 };
    const saved = { set, generation, attempt, pair, at: clock.now(), latencyMs: 1 };
    reserveFile({ ...ours, owner }, 'rescue').put({ ...saved, outcome: 'rotated' });
  }
});

/** A gateway over a healthy pair of generation 2. */
async function ready(rescue?: Rescue) {
  const service = await startScripted();
  const kept = await startKept(service, rescue && { rescue });
  await kept.clock.asleep();
  await kept.ask(PERSON);
  return { ...kept, service };
}

/** Callers and the keeper get only this answer for a while; then the service is honest again. */
async function bearIt(answer: TokenFault, expectFailure: (answer: Failure) => void) {
  const { service, ask, clock, store, logged } = await ready();
  const before = await store.read();
  service.tokenAnswers.every(1, answer);
  service.expire();
  for (let request = 0; request < 3; request += 1) {
    const { errors } = await ask(PERSON);
    expectFailure({ errors: errors!, logged });
  }
  // After an unclear answer, the refresh token is sent once more at once, because the access token does not work.
  const { length } = service.exchanges;
  expect(length).toBeLessThanOrEqual(3);
  await clock.pass(0.7 * DAY);
  expect(service.exchanges.length).toBeGreaterThan(length);
  expect(service.exchanges.length).toBeLessThan(60);
  const { pair, generation, lost } = before!;
  expect(await store.read()).toMatchObject({ pair, generation, lost });

  service.tokenAnswers.clear();
  await clock.pass(65 * MINUTE);
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(await store.read()).toMatchObject({ generation: 3, claim: null });
  expect(sentAgain(service.exchanges)).toEqual([]);
}

type Failure = { errors: readonly GraphQLError[]; logged: Record<string, unknown>[] };

/** The new pair, with other values of these fields. */
function pairWith(fields: object): TokenFault {
  return (pair) => ({ status: 200, body: JSON.stringify({ ...JSON.parse(pair), ...fields }) });
}

function writing(write: (response: ServerResponse) => void | Promise<void>): TokenFault {
  return { status: 0, write };
}

function raw(text: string): TokenFault {
  return writing((response) => void response.socket!.end(text));
}
