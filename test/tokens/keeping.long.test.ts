import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { readTokenSet } from '../../src/tokens/token-set.ts';
import { loggedFor } from '../support/gateway/operator-lines.ts';
import { DAY, HOUR, ManualClock, MINUTE, SECOND, YEAR } from '../support/random/manual-clock.ts';
import { startGateway } from '../support/gateway/gateway.ts';
import { refusal } from '../support/imitations/scripted.ts';
import { startKept, startKeptOverSandbox, type Kept } from '../support/tokens/kept.ts';
import {
  codesOf,
  pairOf,
  PERSON,
  reply,
  sentAgain,
  startScripted,
  watchStore,
} from '../support/tokens/tokens.ts';
import { personUnlikeOthers } from '../support/clients/unlike.ts';

const LOST =
  /an administrator revoked it, or made another one.*Run `tokens recover` first.*If it finds none, have an administrator.*`tokens import/;

describe('TOKEN_LINK', () => {
  test('the link is imported into an empty store and refreshed at once, so that it no longer works', async () => {
    const { ask, clock, sandbox, store } = await startKeptOverSandbox();
    await clock.asleep();
    expect(sandbox.stats).toMatchObject({
      refreshes: 1,
      requests: { tokenLink: 1, oauthToken: 1 },
    });
    expect((await fetch(sandbox.tokenLink)).status).toBe(404);
    expect(await store.read()).toMatchObject({ baseUrl: sandbox.url, generation: 2, claim: null });
    expect(codesOf(await ask(PERSON))).toEqual([]);
  });

  test('over a healthy set the link is ignored with a warning, and not even fetched', async () => {
    const first = await startKeptOverSandbox();
    await first.clock.asleep();
    await first.stop();
    const other = await startScripted();
    const { clock, store } = first;
    const before = await store.read();
    const second = await startKept(
      { url: first.sandbox.url, tokenLink: other.tokenLink },
      { clock, store },
    );
    await clock.asleep();

    expect(other.sandbox.stats.requests.tokenLink).toBe(0);
    expect(await store.read()).toEqual(before);
    expect(warnings(second)).toEqual([expect.stringContaining('TOKEN_LINK is ignored')]);
    expect(codesOf(await second.ask(PERSON))).toEqual([]);
  });

  test('the link is imported over a lost set', async () => {
    const { service, clock, store, ...first } = await startLost();
    await first.stop();
    const tokenLink = service.makeNewSet();
    const second = await startKept({ url: service.url, tokenLink }, { clock, store });
    await clock.asleep();

    expect(codesOf(await second.ask(PERSON))).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: 5, lost: false });
    expect(sentAgain(service.exchanges)).toEqual([]);
  });

  test('no request is without a token, however early it arrives', async () => {
    const { ask } = await startKeptOverSandbox();
    expect(codesOf(await ask(PERSON))).toEqual([]);
  });

  test('after a failed first refresh the set is refreshed as soon as possible, even if its access token has expired', async () => {
    const service = await startScripted();
    service.expire();
    service.tokenAnswers.every(1, reply(403, {}));
    const { ask, clock, store } = await startKept(service);
    await clock.asleep();
    expect(service.exchanges).toHaveLength(1);
    expect(codesOf(await ask(PERSON))).toEqual(['UPSTREAM_UNAUTHORIZED']);

    service.tokenAnswers.clear();
    await clock.pass(10 * MINUTE);
    expect(await store.read()).toMatchObject({ generation: 2 });
    expect(codesOf(await ask(PERSON))).toEqual([]);
  });

  test('a set that was imported but not refreshed before the gateway stopped is refreshed by the next one', async () => {
    const service = await startScripted();
    service.tokenAnswers.every(1, reply(401, {}));
    const { clock, store, stop } = await startKept(service);
    await clock.asleep();
    await stop();
    service.tokenAnswers.clear();
    await startKept({ url: service.url }, { clock, store });
    await clock.asleep();
    expect(await store.read()).toMatchObject({ generation: 2, imported: false });
  });

  test('a link that the store cannot save at first is imported when it can', async () => {
    const service = await startScripted();
    const store = watchStore();
    store.failing.add('import');
    const { ask, clock } = await startKept(service, { store });
    await clock.asleep();
    expect(codesOf(await ask(PERSON))).toEqual(['TOKENS_MISSING']);
    store.failing.clear();
    await clock.pass(MINUTE);
    expect(codesOf(await ask(PERSON))).toEqual([]);
  });
});

describe('a token pair', () => {
  test('a pair refreshed before its expiry is in the store before any request uses it', async () => {
    const { ask, clock, store, lastBearer } = await startKeptOverSandbox();
    await clock.asleep();
    await ask(PERSON);
    const old = lastBearer();
    const saving = store.hold('save');
    clock.jump(0.7 * DAY);
    await saving.reached;
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(lastBearer()).toBe(old);
    saving.release();
    await clock.asleep();
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(lastBearer()).not.toBe(old);
    expect(store.kept).toContain(lastBearer());
  });

  test('a pair refreshed after its expiry is in the store before any request uses it', async () => {
    const { ask, clock, sandbox, service, store, lastBearer } = await startKeptOverSandbox();
    await clock.asleep();
    await ask(PERSON);
    const old = lastBearer();
    const saving = store.hold('save');
    service.ahead += 2 * DAY;
    const asked = ask(PERSON);
    await saving.reached;
    const before = sandbox.stats.requests.graphql;
    expect(lastBearer()).toBe(old);
    saving.release();
    expect(codesOf(await asked)).toEqual([]);
    expect(sandbox.stats.requests.graphql).toBe(before + 1);
    expect(store.kept).toContain(lastBearer());
  });

  test('every pair is refreshed at about two thirds of its life, without a request', async () => {
    const { clock, store } = await startKeptOverSandbox();
    await clock.asleep();
    const savedAt: number[] = [];
    for (let hundredth = 0; hundredth < 300; hundredth += 1) {
      savedAt.push((await store.read())!.savedAt);
      await clock.pass(DAY / 100);
    }
    const refreshes = [...new Set(savedAt)];
    const lives = refreshes.slice(1).map((at, index) => (at - refreshes[index]!) / DAY);
    expect(lives.length).toBeGreaterThanOrEqual(4);
    expect(Math.min(...lives)).toBeGreaterThan(0.63);
    expect(Math.max(...lives)).toBeLessThan(0.67);
  });

  test('a pair that lives for two seconds is refreshed in time', async () => {
    const { ask, clock, sandbox } = await startKeptOverSandbox({ expiresIn: 2 });
    await clock.asleep();
    for (let second = 0; second < 20; second += 1) {
      await clock.pass(SECOND);
      expect(codesOf(await ask(PERSON))).toEqual([]);
    }
    expect(sandbox.stats.refreshes).toBeLessThanOrEqual(1 + 20);
  });

  test('a pair is refreshed long before its refresh token expires, also if the access token lives longer', async () => {
    const { clock, store } = await startKeptOverSandbox({
      expiresIn: (4 * YEAR) / SECOND,
      refreshExpiresIn: (3 * DAY) / SECOND,
    });
    await clock.pass(10 * DAY);
    const found = await store.read();
    expect(found).toMatchObject({ lost: false });
    expect(found!.generation).toBeGreaterThanOrEqual(2 + 4);
    expect(found!.generation).toBeLessThanOrEqual(2 + 5);
  });

  test('no request waits for a refresh: the old access token is used meanwhile', async () => {
    const service = await startScripted();
    const { ask, clock, store } = await startKept(service);
    await clock.asleep();
    const exchange = service.tokenAnswers.hold('before');
    clock.jump(0.7 * DAY);
    await exchange.arrived;
    for (let request = 0; request < 3; request += 1) {
      expect(codesOf(await ask(PERSON))).toEqual([]);
    }
    exchange.release();
    await clock.asleep();
    expect(await store.read()).toMatchObject({ generation: 3 });
  });

  test('if an early refresh fails the pair remains in use, and the refresh is retried with growing pauses', async () => {
    const service = await startScripted();
    const { ask, clock, store } = await startKept(service);
    await clock.asleep();
    service.tokenAnswers.every(1, reply(429, 'Not now', { 'retry-after': '600' }));
    await clock.pass(0.7 * DAY);
    for (let tenth = 0; tenth < 10; tenth += 1) {
      await clock.pass(0.02 * DAY);
      expect(codesOf(await ask(PERSON))).toEqual([]);
    }
    const hours = (0.23 * DAY) / HOUR + 1;
    expect(service.exchanges.length).toBeGreaterThan(3);
    expect(service.exchanges.length).toBeLessThan(30 * hours);

    service.tokenAnswers.clear();
    await clock.pass(10 * MINUTE);
    expect(await store.read()).toMatchObject({ generation: 3, claim: null });
    expect(sentAgain(service.exchanges)).toEqual([]);
  });
});

describe('an access token that expired', () => {
  test.each([false, true])(
    '200 requests with an expired token cost one exchange and one replay each, and no caller gets an error (revoked on refresh: %s)',
    async (revokeOnRefresh) => {
      // All of them are in flight together; none waits for its turn.
      const config = { upstreamConcurrency: 200 };
      const options = { revokeOnRefresh, config };
      const { ask, clock, sandbox, service } = await startKeptOverSandbox(options);
      await clock.asleep();
      await ask(PERSON);
      service.ahead += 2 * DAY;
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, number) =>
          ask(`{ p${number}: persons(first: ${number + 1}) { items { id } } }`),
        ),
      );
      expect(answers.flatMap(codesOf)).toEqual([]);
      expect(answers.map(({ data }) => Object.keys(data))).toEqual(
        Array.from({ length: 200 }, (_, number) => [`p${number}`]),
      );
      expect(sandbox.stats).toMatchObject({ refreshes: 2, requests: { oauthToken: 2 } });
      expect(sandbox.stats.requests.graphql).toBe(1 + 2 * 200);
    },
  );

  test('requests whose token a refresh has ended get no error while the new pair is being saved', async () => {
    const { ask, clock, sandbox, store } = await startKeptOverSandbox({ revokeOnRefresh: true });
    await clock.asleep();
    const saving = store.hold('save');
    clock.jump(0.7 * DAY);
    await saving.reached;
    const refused = sandbox.stats.requests.graphql;
    const asked = [ask(personUnlikeOthers()), ask(personUnlikeOthers())];
    while (sandbox.stats.requests.graphql < refused + 2 || sandbox.stats.inFlight > 0) {
      await fetch(`${sandbox.url}/nothing`);
    }
    saving.release();
    expect((await Promise.all(asked)).flatMap(codesOf)).toEqual([]);
    expect(sandbox.stats.requests.oauthToken).toBe(2);
  });

  test('a refresh is completed although the caller that caused it disconnects', async () => {
    const { ask, clock, sandbox, service, store } = await startKeptOverSandbox();
    await clock.asleep();
    await ask(PERSON);
    service.ahead += 2 * DAY;
    const leaving = new AbortController();
    const saving = store.hold('save');
    const left = ask(PERSON, {}, { signal: leaving.signal }).catch(() => undefined);
    await saving.reached;
    leaving.abort();
    saving.release();
    await left;
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: 3 });
    expect(sandbox.stats.requests.oauthToken).toBe(2);
  });

  test.each([
    [401, 'token_revoked'],
    [401, ''],
    [403, 'token_expired'],
  ])(
    'a %i %s is not an expired token: there is no exchange, and the likely cause is named',
    async (status, detail) => {
      const service = await startScripted();
      const { ask, clock, logged } = await startKept(service);
      await clock.asleep();
      await ask(PERSON);
      service.answerAll(refusal(detail, status));
      const answer = await ask(PERSON);
      expect(codesOf(answer)).toEqual(['UPSTREAM_UNAUTHORIZED']);
      expect(loggedFor(logged, answer)).toMatch(/administrator.*demoted or blocked/);
      expect(service.exchanges).toHaveLength(1);
    },
  );

  test('a token that expires right after each refresh does not cause endless refreshes', async () => {
    const service = await startScripted();
    const { ask, clock, logged } = await startKept(service);
    await clock.asleep();
    await ask(PERSON);
    service.answerAll(refusal('token_expired'));
    for (let request = 0; request < 20; request += 1) {
      const answer = await ask(PERSON);
      expect(codesOf(answer)).toEqual(['UPSTREAM_UNAUTHORIZED']);
      expect(loggedFor(logged, answer)).toMatch(/refuses a new access token as expired/);
    }
    expect(service.exchanges).toHaveLength(2);
  });
});

describe('the wall clock', () => {
  test.each([YEAR, -YEAR, DAY, -DAY])(
    'setting the wall clock by %i ms while the gateway runs changes nothing',
    async (jump) => {
      const { ask, clock, sandbox } = await startKeptOverSandbox();
      await clock.asleep();
      clock.setWall(jump);
      for (let tenth = 0; tenth < 10; tenth += 1) {
        await clock.pass(0.1 * DAY);
        expect(codesOf(await ask(PERSON))).toEqual([]);
      }
      expect(sandbox.stats.requests.oauthToken).toBe(2);
    },
  );

  test.each([
    [0.2 * YEAR, false],
    [-YEAR, false],
    [0.2 * YEAR, true],
    [-YEAR, true],
  ])(
    'setting the wall clock by %i ms while the gateway is stopped costs at most one exchange (meanwhile expired: %s)',
    async (jump, expired) => {
      const first = await startKeptOverSandbox();
      const { clock, sandbox, store, service } = first;
      await clock.asleep();
      await first.ask(PERSON);
      await first.stop();
      clock.setWall(jump);
      if (expired) service.ahead += 2 * DAY;
      const second = await startKept({ url: sandbox.url }, { clock, store });
      await clock.asleep();
      const answers = await Promise.all([
        second.ask(personUnlikeOthers()),
        second.ask(personUnlikeOthers()),
      ]);
      await clock.pass(0.5 * DAY);
      expect([...answers, await second.ask(PERSON)].flatMap(codesOf)).toEqual([]);
      expect(sandbox.stats.requests.oauthToken).toBeLessThanOrEqual(3);
    },
  );

  test('a wall clock set beyond the end of the refresh token causes no request, and correcting it is enough', async () => {
    const first = await startKeptOverSandbox();
    const { clock, sandbox, store, service } = first;
    await clock.asleep();
    await first.stop();
    clock.setWall(YEAR);
    service.ahead += 2 * DAY;
    const second = await startKept({ url: sandbox.url }, { clock, store });
    const refused = await second.ask(PERSON);
    const { logged } = second;
    expect(codesOf(refused)).toEqual(['TOKENS_LOST']);
    expect(loggedFor(logged, refused)).toMatch(/clock of the token store/);
    await clock.pass(DAY);
    expect(sandbox.stats.requests.oauthToken).toBe(1);

    clock.setWall(-YEAR);
    await clock.pass(MINUTE);
    expect(codesOf(await second.ask(PERSON))).toEqual([]);
    expect(sandbox.stats.requests.oauthToken).toBe(2);
  });

  test('a suspend of 30 hours costs one exchange', async () => {
    const { ask, clock, sandbox } = await startKeptOverSandbox();
    await clock.asleep();
    clock.jump(30 * HOUR);
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(personUnlikeOthers())));
    await clock.asleep();
    expect(answers.flatMap(codesOf)).toEqual([]);
    expect(sandbox.stats.requests.oauthToken).toBe(2);
  });
});

describe('a refresh token that is not renewed', () => {
  test.each([
    [30.5, undefined],
    [29.5, 29],
    [13.5, 13],
    [6.5, 6],
    [2.5, 2],
    [0.5, 0],
  ])('the log warns of a refresh token that has %d days left: %s', async (left, daysLeft) => {
    const { logged } = await startWithDaysLeft(left);
    expect(warningsOfEnd(logged)).toEqual(daysLeft === undefined ? [] : [daysLeft]);
  });

  test('the log warns once more at each threshold, and not more often', async () => {
    const { clock, logged } = await startWithDaysLeft(3.2);
    for (let hours = 0; hours < 72; hours += 1) {
      clock.jump(HOUR);
      await clock.asleep();
    }
    expect(warningsOfEnd(logged)).toEqual([3, 2, 0]);
  });
});

describe('a store', () => {
  test.each(['claim', 'read'] as const)(
    'a store whose %s fails allows no exchange',
    async (method) => {
      const { ask, clock, sandbox, service, store } = await startKeptOverSandbox();
      await clock.asleep();
      await ask(PERSON);
      store.failing.add(method);
      await clock.pass(0.7 * DAY);
      expect(codesOf(await ask(PERSON))).toEqual([]);
      service.ahead += DAY;
      expect(codesOf(await ask(PERSON))).toEqual([expect.any(String)]);
      expect(sandbox.stats.requests.oauthToken).toBe(1);

      store.failing.clear();
      await clock.pass(10 * MINUTE);
      expect(codesOf(await ask(PERSON))).toEqual([]);
      expect(sandbox.stats.requests.oauthToken).toBe(2);
    },
  );

  test('a claim that the store cannot save while a refresh is uncertain is retried with growing pauses, not every second', async () => {
    const service = await startScripted();
    const { clock, store, logged } = await startKept(service);
    await clock.asleep();
    service.expire();
    service.tokenAnswers.next('drop-before', 'drop-before');
    service.tokenAnswers.hold('before').release();
    const second = service.tokenAnswers.hold('before');
    void second.arrived.then(() => store.failing.add('claim')).finally(() => second.release());
    await clock.pass(0.7 * DAY);
    expect(service.exchanges).toHaveLength(3);
    const before = failed(logged);
    await clock.pass(HOUR);
    const tries = failed(logged) - before;
    expect(tries).toBeGreaterThan(10);
    expect(tries).toBeLessThan(40);

    store.failing.clear();
    await clock.pass(10 * MINUTE);
    expect(await store.read()).toMatchObject({ generation: 3, claim: null });
  });

  test('if the pair cannot be saved, the gateway serves from memory, and saves it when possible', async () => {
    const { ask, clock, sandbox, service, store, lastBearer } = await startKeptOverSandbox();
    await clock.asleep();
    await ask(PERSON);
    const old = lastBearer();
    store.failing.add('save');
    service.ahead += 2 * DAY;
    expect(codesOf(await ask(PERSON))).toEqual([]);
    await clock.pass(HOUR);
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(lastBearer()).not.toBe(old);
    expect(await store.read()).toMatchObject({ generation: 2, pair: { accessToken: old } });

    store.failing.clear();
    await clock.pass(SECOND);
    expect(await store.read()).toMatchObject({
      generation: 3,
      claim: null,
      pair: { accessToken: lastBearer() },
    });
    expect(sandbox.stats.requests.oauthToken).toBe(2);
  });

  test('if the store still cannot save at the next expiry, there is no exchange, and the log says why', async () => {
    const { ask, clock, sandbox, service, store, logged } = await startKeptOverSandbox();
    await clock.asleep();
    await ask(PERSON);
    store.failing.add('save');
    service.ahead += 2 * DAY;
    await ask(PERSON);
    await clock.pass(HOUR);
    clock.jump(0.7 * DAY - HOUR);
    await clock.pass(MINUTE);
    service.ahead += 2 * DAY;
    const answer = await ask(PERSON);
    expect(loggedFor(logged, answer)).toMatch(/store cannot be written/);
    expect(sandbox.stats.requests.oauthToken).toBe(2);

    store.failing.clear();
    await clock.pass(10 * MINUTE);
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: 4 });
  });

  test('a store that fails while the set is lost is still watched', async () => {
    const { service, clock, store, ask } = await startLost();
    store.failing.add('read');
    await clock.pass(HOUR);
    store.failing.clear();
    const byHand = readTokenSet(await (await fetch(service.makeNewSet())).json())!;
    const after = (await store.read())!;
    const { generation } = after;
    await store.import({ baseUrl: service.url, pair: byHand, replica: 'hand', after });
    await clock.pass(10 * MINUTE);
    expect(await store.read()).toMatchObject({ generation: generation + 2, lost: false });
    expect(codesOf(await ask(PERSON))).toEqual([]);
  });

  test('the store of another service is refused with both services named, and left unchanged', async () => {
    const store = watchStore();
    await store.import({
      baseUrl: 'https://other.test',
      pair: pairOf('other'),
      replica: 'test',
      after: null,
    });
    const before = await store.read();
    const service = await startScripted();
    const refused = startGateway(service, { clock: new ManualClock(), store });
    await expect(refused).rejects.toThrow(/https:\/\/other\.test/);
    await expect(refused).rejects.toThrow(service.url);
    expect(await store.read()).toEqual(before);
    expect(service.sandbox.stats.requests.tokenLink + service.exchanges.length).toBe(0);
  });
});

describe('a stop', () => {
  test('a stop while the pair cannot be saved waits until it can', async () => {
    const { ask, clock, service, store, stop } = await startKeptOverSandbox();
    await clock.asleep();
    await ask(PERSON);
    store.failing.add('save');
    service.ahead += 2 * DAY;
    await ask(PERSON);
    let stopped = false;
    const stopping = stop().then(() => (stopped = true));
    await clock.pass(MINUTE);
    expect(stopped).toBe(false);
    store.failing.clear();
    clock.jump(SECOND);
    await stopping;
    expect(await store.read()).toMatchObject({ generation: 3 });
  });

  test('a stop between the claim and the request sends nothing, and leaves no claim', async () => {
    const { clock, sandbox, store, stop } = await startKeptOverSandbox();
    await clock.asleep();
    const claiming = store.hold('claim');
    clock.jump(0.7 * DAY);
    await claiming.reached;
    const stopping = stop();
    claiming.release();
    await stopping;
    expect(sandbox.stats.requests.oauthToken).toBe(1);
    expect(await store.read()).toMatchObject({ generation: 2, claim: null });
  });

  test('no exchange begins after a stop', async () => {
    const { clock, sandbox, stop } = await startKeptOverSandbox();
    await clock.asleep();
    await stop();
    clock.jump(10 * DAY);
    await fetch(sandbox.url);
    expect(sandbox.stats.requests.oauthToken).toBe(1);
  });
});

describe('without a working set', () => {
  test('without a set each query gets an error, the log has the steps to import one, and readiness fails', async () => {
    const service = await startScripted();
    const { ask, fetch: get, clock, logged } = await startKept({ url: service.url });
    await clock.asleep();
    const answer = await ask(PERSON);
    expect(codesOf(answer)).toEqual(['TOKENS_MISSING']);
    expect(loggedFor(logged, answer)).toMatch(/administrator.*tokens import/s);
    expect((await get('/ready')).status).not.toBe(200);
    await clock.pass(DAY);
    expect(service.exchanges).toEqual([]);
  });

  test('after a loss each query gets an error, the log says what to do, and nothing more is sent', async () => {
    const { service, clock, store, ask, logged } = await startLost();
    const before = service.exchanges.length;
    for (let request = 0; request < 10; request += 1) {
      const answer = await ask(PERSON);
      expect(codesOf(answer)).toEqual(['TOKENS_LOST']);
      expect(loggedFor(logged, answer)).toMatch(LOST);
    }
    expect(logged.filter(({ trouble }) => trouble === 'lost')).toMatchObject([
      { level: 60, msg: expect.stringMatching(LOST) },
    ]);
    await clock.pass(2 * DAY);
    expect(service.exchanges).toHaveLength(before);
    expect(await store.read()).toMatchObject({ generation: 3, lost: true });
  });

  test('a refusal before the expiry is no loss yet: the access token serves, and the refresh token is sent twice more after it', async () => {
    const service = await startScripted();
    const { ask, clock, store } = await startKept(service);
    await clock.asleep();
    service.tokenAnswers.every(
      1,
      reply(400, { error: 'invalid_grant', error_description: 'Revoked.' }),
    );
    await clock.pass(0.7 * DAY);
    expect(await store.read()).toMatchObject({ lost: false, refusedEarly: true });
    expect(codesOf(await ask(PERSON))).toEqual([]);
    clock.setWall(-YEAR);
    service.expire();
    expect(codesOf(await ask(PERSON))).toEqual(['TOKENS_LOST']);
    await clock.pass(DAY);
    expect(await store.read()).toMatchObject({ lost: true, refusedEarly: false });
    expect(service.exchanges).toHaveLength(4);
  });

  test('after a loss because of an answer that never arrived, everything received is still there', async () => {
    const service = await startScripted();
    const { ask, clock, store, logged } = await startKept(service);
    await clock.asleep();
    await ask(PERSON);
    const before = await store.read();
    service.tokenAnswers.next('drop-after');
    service.expire();
    for (let time = 0; time < 3; time += 1) {
      const answer = await ask(PERSON);
      expect(codesOf(answer)).toEqual(['TOKENS_LOST']);
      expect(loggedFor(logged, answer)).toMatch(/never got its answer/);
      await clock.pass(10 * MINUTE);
    }
    expect(await store.read()).toMatchObject({ pair: before!.pair, lost: true });
    expect(service.exchanges.map(({ outcome }) => outcome)).toEqual([
      'answered',
      'spent-in-silence',
      'invalid-grant',
    ]);
  });
});

describe('a refresh that takes long', () => {
  test('a caller waits half a minute for a pair that another process may still save, and the loss is reported later', async () => {
    const [service, store] = [await startScripted(), watchStore()];
    const { claim } = store;
    // As after a failover, which may have lost the claim of another process.
    store.claim = async (wanted) => (await claim(wanted)) && { exclusive: false };
    const { ask, clock, logged } = await startKept(service, { store });
    await clock.asleep();
    await ask(PERSON);
    service.tokenAnswers.next(reply(400, { error: 'invalid_grant' }));
    const exchange = service.tokenAnswers.hold('before');
    exchange.release();
    service.expire();
    const asked = ask(PERSON);
    await exchange.arrived;
    await clock.pass(20 * SECOND);
    expect(await Promise.race([asked, setImmediate('waits')])).toBe('waits');
    await clock.pass(11 * SECOND);
    const answer = await asked;
    expect(codesOf(answer)).toEqual(['UPSTREAM_TIMEOUT']);
    expect(loggedFor(logged, answer)).toMatch(/takes longer than 30 s.*try again/);
    expect(await store.read()).toMatchObject({ lost: false });
    expect(logged.filter(({ msg }) => /refused the refresh token/.test(String(msg)))).toEqual([
      expect.objectContaining({
        level: 40,
        generation: 2,
        waitSeconds: expect.any(Number),
        msg: expect.stringMatching(/another process may have.*do not import a new token/i),
      }),
    ]);
    await clock.pass(3 * MINUTE);
    expect(codesOf(await ask(PERSON))).toEqual(['TOKENS_LOST']);
    expect(service.exchanges).toHaveLength(2);
  });

  test('a caller waits half a minute for a late answer, and its pair is saved and used', async () => {
    const service = await startScripted();
    const { ask, clock, store } = await startKept(service);
    await clock.asleep();
    await ask(PERSON);
    const exchange = service.tokenAnswers.hold('before');
    service.expire();
    const asked = ask(PERSON);
    await exchange.arrived;
    await clock.pass(31 * SECOND);
    expect(codesOf(await asked)).toEqual(['UPSTREAM_TIMEOUT']);
    exchange.release();
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: 3, claim: null });
    expect(service.exchanges).toHaveLength(2);
  });
});

describe('a loss that could not be written to the store', () => {
  test('the process knows of the loss: nothing more is sent, and the loss is recorded as soon as the store works', async () => {
    const service = await startScripted();
    const { ask, clock, store } = await startKept(service);
    await clock.asleep();
    await ask(PERSON);
    store.failing.add('endAttempt');
    service.tokenAnswers.next('drop-after');
    service.expire();
    expect(codesOf(await ask(PERSON))).toEqual(['TOKENS_LOST']);
    await clock.pass(HOUR);
    clock.jump(DAY);
    await clock.pass(MINUTE);
    expect(codesOf(await ask(PERSON))).toEqual(['TOKENS_LOST']);
    expect(service.exchanges.map(({ outcome }) => outcome)).toEqual([
      'answered',
      'spent-in-silence',
      'invalid-grant',
    ]);

    store.failing.clear();
    await clock.pass(MINUTE);
    expect(await store.read()).toMatchObject({ lost: true });
  });
});

/** Lost at generation 3, because another client spent the refresh token. */
async function startLost() {
  const service = await startScripted();
  const kept = await startKept(service);
  await kept.clock.asleep();
  await kept.ask(PERSON);
  service.expire();
  await kept.ask(PERSON);
  service.makeNewSet();
  service.expire();
  expect(codesOf(await kept.ask(PERSON))).toEqual(['TOKENS_LOST']);
  return { ...kept, service };
}

/** Over a service that cannot be reached. */
async function startWithDaysLeft(days: number): Promise<Kept> {
  const service = await startScripted();
  await service.down();
  const clock = new ManualClock();
  const store = watchStore();
  store.useClock({ now: () => clock.now() - (120 - days) * DAY });
  const pair = pairOf('old');
  await store.import({ baseUrl: service.url, pair, replica: 'test', after: null });
  const kept = await startKept({ url: service.url }, { clock, store });
  await clock.asleep();
  return kept;
}

function warningsOfEnd(logged: Kept['logged']): unknown[] {
  return logged.filter(({ trouble }) => trouble === 'ending').map(({ daysLeft }) => daysLeft);
}

function warnings({ logged }: Kept): unknown[] {
  return logged.filter(({ level }) => level === 40).map(({ msg }) => msg);
}

function failed(logged: Kept['logged']): number {
  return logged.filter(({ msg }) => msg === 'the access token could not be refreshed').length;
}
