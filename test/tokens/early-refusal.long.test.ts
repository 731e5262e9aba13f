/** Services that refuse every exchange before the access token has expired, with the answer for a spent token. */
import { expect, test } from 'vitest';
import { DAY, HOUR, ManualClock, MINUTE, SECOND } from '../support/random/manual-clock.ts';
import type { TokenDocument } from '../../src/tokens/store/token-document.ts';
import { timedDatabase } from '../support/tokens/timed-store.ts';
import { honest, refusal, text } from '../support/imitations/scripted.ts';
import type { TokenFault } from '../service/token-answers.ts';
import { startKept, startKeptOverSandbox, type Kept } from '../support/tokens/kept.ts';
import {
  codesOf,
  PERSON,
  reply,
  sentAgain,
  startScripted,
  watchStore,
} from '../support/tokens/tokens.ts';

/** A service that refuses to exchange while an access token works. */
const EARLY = { refuseEarlyRefresh: 400 } as const;

test.each([400, 403] as const)(
  'where early exchanges are refused with status %i, every caller is served, there is one alarm, and one exchange after each expiry',
  async (refuseEarlyRefresh) => {
    const kept = await startKeptOverSandbox({ refuseEarlyRefresh });
    const { ask, clock, logged, sandbox, store } = kept;
    await clock.asleep();
    expect(await store.read()).toMatchObject({ generation: 1, lost: false, refusedEarly: true });
    expect(alarmsIn(logged)).toEqual([
      expect.objectContaining({
        level: 50,
        generation: 1,
        inSeconds: 86_400,
        msg: expect.stringMatching(
          /Either it exchanges none before.*expired, or the refresh token is spent/,
        ),
      }),
    ]);
    expect(await troublesOf(kept)).toEqual(['early-or-spent']);

    // Three lives, with a request in each half an hour.
    for (let time = 0; time < 3.2 * DAY; time += HOUR / 2) {
      expect(codesOf(await ask(PERSON))).toEqual([]);
      await clock.pass(HOUR / 2);
    }
    expect(await store.read()).toMatchObject({ generation: 4, lost: false, refusesEarly: true });
    expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual([
      'too-early',
      ...Array.from({ length: 3 }, () => 'answered'),
    ]);
    expect(alarmsIn(logged)).toHaveLength(1);
    expect(logged.filter(({ level }) => Number(level) >= 50)).toHaveLength(1);
    expect(logged.filter(({ msg }) => /refreshes wait for the expiry/.test(String(msg)))).toEqual([
      expect.objectContaining({ level: 30 }),
    ]);
    expect(await troublesOf(kept)).toEqual([]);
    const outcomes = (await store.history(100)).map(({ outcome }) => outcome);
    expect(outcomes.toReversed()).toEqual(['imported', 'early', 'rotated', 'rotated', 'rotated']);
    expect(await kept.gateway.metrics.text()).toContain(
      'recruiting_token_exchanges_total{outcome="early-or-spent"} 1',
    );
  },
);

test('without a request, the exchange after the expiry happens within some seconds, and nothing is logged as late', async () => {
  const kept = await startKeptOverSandbox({ refuseEarlyRefresh: 400 });
  const { clock, store, logged } = kept;
  await clock.asleep();
  for (let generation = 2; generation < 5; generation += 1) {
    await clock.pass(DAY - MINUTE);
    expect(await store.read()).toMatchObject({ generation: generation - 1 });
    expect(await troublesOf(kept)).toEqual(generation === 2 ? ['early-or-spent'] : []);
    await clock.pass(MINUTE + 5 * SECOND);
    expect(await store.read()).toMatchObject({ generation });
  }
  expect(alarmsIn(logged)).toHaveLength(1);
});

test('a service whose access tokens live longer than it says is asked /auth_check, and gets no exchange while they work', async () => {
  const { clock, store, sandbox, service, logged } = await startKeptOverSandbox({
    refuseEarlyRefresh: 400,
  });
  await clock.asleep();
  // Its clock is slower.
  service.ahead -= HOUR;
  await clock.pass(DAY + 50 * MINUTE);
  expect(sandbox.exchanges).toHaveLength(1);
  expect(await store.read()).toMatchObject({ generation: 1, lost: false });
  expect(sandbox.stats.requests.authCheck).toBeLessThan(30);
  await clock.pass(20 * MINUTE);
  expect(await store.read()).toMatchObject({ generation: 2 });
  expect(sandbox.exchanges).toHaveLength(2);
  expect(alarmsIn(logged)).toHaveLength(1);
});

test('an access token that expires sooner than the service says is renewed at the first token_expired', async () => {
  const { ask, clock, store, sandbox, service } = await startKeptOverSandbox({
    refuseEarlyRefresh: 403,
  });
  await clock.asleep();
  await ask(PERSON);
  service.ahead += 2 * DAY;
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(await store.read()).toMatchObject({ generation: 2, refusesEarly: true });
  expect(sandbox.exchanges).toHaveLength(2);
});

test('what one replica has learned holds for those that start later, and for later imports', async () => {
  const first = await startKeptOverSandbox({ refuseEarlyRefresh: 400 });
  const { clock, store, sandbox } = first;
  await clock.asleep();
  await clock.pass(DAY + MINUTE);
  expect(await store.read()).toMatchObject({ generation: 2, refusesEarly: true });
  await first.stop();

  const second = await startKept({ url: sandbox.url }, { clock, store });
  await clock.pass(0.9 * DAY);
  expect(sandbox.exchanges).toHaveLength(2);
  expect(alarmsIn(second.logged)).toEqual([]);
  await clock.pass(0.2 * DAY);
  expect(await store.read()).toMatchObject({ generation: 3 });

  // Only the link is asked for, not an exchange.
  sandbox.makeNewSet();
  const before = (await store.read())!;
  const made = (await (await fetch(sandbox.tokenLink)).json()) as Record<string, string>;
  const pair = {
    ...before.pair,
    accessToken: made['access_token']!,
    refreshToken: made['refresh_token']!,
  };
  await store.import({ baseUrl: before.baseUrl, pair, replica: 'hand', after: before });
  await clock.pass(0.9 * DAY);
  expect(await store.read()).toMatchObject({ generation: 4, imported: true });
  expect(sandbox.exchanges).toHaveLength(3);
  expect(codesOf(await second.ask(PERSON))).toEqual([]);
  expect(await troublesOf(second)).toEqual([]);
  await clock.pass(0.2 * DAY);
  expect(await store.read()).toMatchObject({ generation: 5, imported: false });
  expect(sandbox.exchanges.map(({ outcome }) => outcome)).toEqual([
    'too-early',
    'answered',
    'answered',
    'answered',
  ]);
});

test('a second replica does not send a refresh token that was refused to the first one', async () => {
  const [service, clock, store] = [await startScripted(EARLY), new ManualClock(), watchStore()];
  const one = await startKept(service, { clock, store });
  await clock.asleep();
  const other = await startKept({ url: service.url }, { clock, store });
  await clock.pass(0.99 * DAY);
  expect(service.exchanges).toHaveLength(1);
  for (const { logged } of [one, other]) expect(alarmsIn(logged)).toHaveLength(1);
  for (const { ask } of [one, other]) expect(codesOf(await ask(PERSON))).toEqual([]);
  service.expire();
  const answers = await Promise.all([one.ask(PERSON), other.ask(PERSON)]);
  expect(answers.flatMap(codesOf)).toEqual([]);
  expect(service.exchanges).toHaveLength(2);
});

test('a gateway that is restarted after the refusal waits for the expiry too', async () => {
  const [service, clock, store] = [await startScripted(EARLY), new ManualClock(), watchStore()];
  const one = await startKept(service, { clock, store });
  await clock.asleep();
  await one.stop();
  const other = await startKept(service, { clock, store });
  await clock.pass(0.9 * DAY);
  expect(service.exchanges).toHaveLength(1);
  expect(alarmsIn(other.logged)).toHaveLength(1);
  service.expire();
  await clock.pass(0.2 * DAY);
  expect(await store.read()).toMatchObject({ generation: 2, refusesEarly: true });
});

test.each<[string, TokenFault]>([
  ['a 400', reply(400, { error: 'invalid_grant', error_description: 'token not expired' })],
  ['a 403', reply(403, { error: 'forbidden' })],
])('a refusal with %s is not recorded as a loss if the store fails then', async (_name, answer) => {
  const service = await startScripted();
  const { ask, clock, store } = await startKept(service);
  await clock.asleep();
  service.tokenAnswers.next(answer);
  store.failing.add('endAttempt');
  await clock.pass(0.7 * DAY);
  store.failing.clear();
  await clock.pass(HOUR);
  expect(service.exchanges).toHaveLength(2);
  expect(await store.read()).toMatchObject({ lost: false, refusedEarly: true, claim: null });
  service.expire();
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(await store.read()).toMatchObject({ generation: 3, refusesEarly: true });
  expect(sentAgain(service.exchanges)).toEqual([]);
});

test('a spent refresh token is called lost only after two exchanges more, when the access token has expired', async () => {
  const service = await startScripted();
  const kept = await startKept(service);
  const { ask, clock, store, logged } = kept;
  await clock.asleep();
  service.tokenAnswers.every(
    1,
    reply(400, { error: 'invalid_grant', error_description: 'Spent.' }),
  );
  await clock.pass(0.7 * DAY);
  expect(await troublesOf(kept)).toEqual(['early-or-spent']);
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(service.exchanges).toHaveLength(2);
  service.expire();
  await clock.pass(0.4 * DAY);
  expect(service.exchanges).toHaveLength(4);
  expect(await store.read()).toMatchObject({
    lost: true,
    refusedEarly: false,
    refusesEarly: false,
  });
  expect(await troublesOf(kept)).toEqual(['lost']);
  expect(alarmsIn(logged)).toHaveLength(1);
  expect(codesOf(await ask(PERSON))).toEqual(['TOKENS_LOST']);
  await clock.pass(2 * DAY);
  expect(service.exchanges).toHaveLength(4);
  const outcomes = (await store.history(4)).map(({ outcome }) => outcome);
  expect(outcomes).toEqual(['spent', 'spent', 'spent', 'rotated']);
});

test('without an /auth_check, a refusal before the expiry is early or spent until a request meets token_expired', async () => {
  const service = await startScripted(EARLY);
  service.answerChecks(text('<html>Nothing</html>', 404));
  const { ask, clock, store } = await startKept(service);
  await clock.asleep();
  expect(await store.read()).toMatchObject({ refusedEarly: true, lost: false });
  await clock.pass(0.5 * DAY);
  expect(service.exchanges).toHaveLength(1);
  service.expire();
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(await store.read()).toMatchObject({ generation: 2 });
});

test.each([
  ['text/html', '<html>Blocked</html>'],
  ['text/plain', 'RBAC: access denied'],
])(
  'the 403 of a firewall (%s) says nothing about the refresh token: it is sent again before the expiry',
  async (type, page) => {
    const service = await startScripted();
    const { clock, store, logged } = await startKept(service);
    await clock.asleep();
    service.tokenAnswers.next(reply(403, page, { 'content-type': type }));
    await clock.pass(0.7 * DAY);
    expect(await store.read()).toMatchObject({ generation: 3, refusesEarly: false });
    expect(alarmsIn(logged)).toEqual([]);
  },
);

test('an exchange without an answer stays uncertain, and is repeated only after the expiry where earlier ones are refused', async () => {
  const service = await startScripted(EARLY);
  const { ask, clock, store } = await startKept(service);
  await clock.asleep();
  service.expire();
  await ask(PERSON);
  expect(await store.read()).toMatchObject({ generation: 2, refusesEarly: true });
  await clock.pass(0.9 * DAY);
  service.tokenAnswers.next('drop-before');
  service.expire();
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(await store.read()).toMatchObject({ generation: 3, claim: null, lost: false });
  expect(sentAgain(service.exchanges)).toEqual([]);
});

test('a refusal that arrives after the expiry, of an exchange that was sent before it, leads to one exchange more', async () => {
  const service = await startScripted();
  const { ask, clock, store } = await startKept(service);
  await clock.asleep();
  await ask(PERSON);
  service.tokenAnswers.next(reply(400, { error: 'invalid_grant' }));
  const exchange = service.tokenAnswers.hold('before');
  clock.jump(0.7 * DAY);
  await exchange.arrived;
  service.expire();
  exchange.release();
  await clock.pass(MINUTE);
  expect(await store.read()).toMatchObject({ generation: 3, lost: false, refusesEarly: true });
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(service.exchanges).toHaveLength(3);
});

test('while the administrator is blocked, a refusal before the expiry says nothing about the refresh token', async () => {
  const service = await startScripted();
  const { ask, clock, store } = await startKept(service);
  await clock.asleep();
  service.answerAll(refusal('user_blocked', 403));
  service.tokenAnswers.next(reply(400, { error: 'invalid_grant' }));
  await clock.pass(0.7 * DAY);
  expect(codesOf(await ask(PERSON))).toEqual(['UPSTREAM_UNAUTHORIZED']);
  expect(await store.read()).toMatchObject({ lost: false, refusedEarly: true });
  service.answerAll(honest);
  service.expire();
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(await store.read()).toMatchObject({ generation: 3 });
});

test('a revoked access token shows that a refused refresh token is lost, without another exchange', async () => {
  const service = await startScripted();
  const { clock, store } = await startKept(service);
  await clock.asleep();
  service.answerAll(refusal('token_revoked'));
  service.tokenAnswers.every(1, reply(400, { error: 'invalid_grant' }));
  await clock.pass(2 * DAY);
  expect(await store.read()).toMatchObject({ lost: true });
  expect(service.exchanges).toHaveLength(2);
});

test('clocks of the service that differ by some seconds cost some seconds, not the tokens', async () => {
  const service = await startScripted();
  const { ask, clock, store } = await startKept(service);
  await clock.asleep();
  await ask(PERSON);
  service.answer(refusal('token_expired'));
  service.tokenAnswers.every(1, reply(400, { error: 'invalid_grant' }));
  service.answerChecks(text('', 204));
  expect(codesOf(await ask(PERSON))).toEqual(['UPSTREAM_UNREACHABLE']);
  await clock.pass(5 * SECOND);
  expect(codesOf(await ask(PERSON))).toEqual(['UPSTREAM_UNREACHABLE']);
  expect(await store.read()).toMatchObject({ lost: false });
  expect(service.exchanges.length).toBeLessThan(5);
  service.answer(honest);
  service.tokenAnswers.clear();
  service.expire();
  await clock.pass(10 * SECOND);
  expect(codesOf(await ask(PERSON))).toEqual([]);
});

test.each([true, false])(
  'where the token endpoint learns of the expiry some seconds after the API, nothing is lost (the service is known: %s)',
  async (isKnown) => {
    const service = await startScripted();
    const { ask, clock, store } = await startKept(service);
    const tooEarly = reply(400, { error: 'invalid_grant' });
    await clock.asleep();
    await ask(PERSON);
    service.tokenAnswers.next(tooEarly);
    await clock.pass(0.7 * DAY);
    if (isKnown) {
      service.expire();
      expect(codesOf(await ask(PERSON))).toEqual([]);
      await clock.pass(0.9 * DAY);
      expect(codesOf(await ask(PERSON))).toEqual([]);
    }
    const { generation } = (await store.read())!;
    service.expire();
    service.tokenAnswers.next(tooEarly);
    const asked = ask(PERSON);
    await clock.pass(6 * SECOND);
    expect(codesOf(await asked)).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: generation + 1, refusesEarly: true });
  },
);

test('a service that contradicts itself for long is believed: the tokens are lost, after a few exchanges', async () => {
  const service = await startScripted();
  const { ask, clock } = await startKept(service);
  await clock.asleep();
  await ask(PERSON);
  service.answer(refusal('token_expired'));
  service.tokenAnswers.every(1, reply(400, { error: 'invalid_grant' }));
  service.answerChecks(text('', 204));
  for (let second = 0; second < 300; second += 5) {
    await ask(PERSON);
    await clock.pass(5 * SECOND);
  }
  expect(codesOf(await ask(PERSON))).toEqual(['TOKENS_LOST']);
  expect(service.exchanges.length).toBeLessThanOrEqual(10);
});

test('clocks of the service that differ by a minute cost a minute or two, not the tokens', async () => {
  const service = await startScripted();
  const { ask, clock, store } = await startKept(service);
  await clock.asleep();
  await ask(PERSON);
  service.answer(refusal('token_expired'));
  service.tokenAnswers.every(1, reply(400, { error: 'invalid_grant' }));
  service.answerChecks(text('', 204));
  for (let second = 0; second < 60; second += 1) {
    await ask(PERSON);
    await clock.pass(SECOND);
  }
  service.answer(honest);
  service.tokenAnswers.clear();
  service.expire();
  await clock.pass(MINUTE);
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(await store.read()).toMatchObject({ generation: 3, lost: false });
});

test('without an /auth_check, the clock of the gateway alone does not show that a refused refresh token is spent', async () => {
  const service = await startScripted();
  const { ask, clock, store } = await startKept(service);
  await clock.asleep();
  await ask(PERSON);
  service.answerChecks(text('<html>Nothing</html>', 404));
  service.tokenAnswers.every(1, reply(400, { error: 'invalid_grant' }));
  await clock.pass(DAY + 10 * SECOND);
  expect(codesOf(await ask(PERSON))).toEqual([]);
  service.tokenAnswers.clear();
  service.expire();
  await clock.pass(20 * SECOND);
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(await store.read()).toMatchObject({ generation: 3, lost: false });
});

test('without an /auth_check and without requests, a spent refresh token is called lost a quarter of an hour after the expiry', async () => {
  const service = await startScripted();
  const { clock, store } = await startKept(service);
  await clock.asleep();
  service.answerChecks(text('<html>Nothing</html>', 404));
  service.tokenAnswers.every(1, reply(400, { error: 'invalid_grant' }));
  await clock.pass(DAY + 20 * MINUTE);
  expect(await store.read()).toMatchObject({ lost: true });
  expect(service.exchanges.length).toBeLessThanOrEqual(12);
});

test('SIGTERM while an early exchange is being refused loses nothing: the next gateway serves, and exchanges after the expiry', async () => {
  const [service, clock, store] = [await startScripted(), new ManualClock(), watchStore()];
  const first = await startKept(service, { clock, store });
  await clock.asleep();
  service.tokenAnswers.next(reply(400, { error: 'invalid_grant' }));
  const exchange = service.tokenAnswers.hold('before');
  clock.jump(0.7 * DAY);
  await exchange.arrived;
  const stopped = first.stop();
  exchange.release();
  await stopped;
  expect(await store.read()).toMatchObject({ generation: 2, lost: false });

  const next = await startKept(service, { clock, store });
  expect(codesOf(await next.ask(PERSON))).toEqual([]);
  service.tokenAnswers.every(1, reply(400, { error: 'invalid_grant' }));
  await clock.pass(0.29 * DAY);
  expect(codesOf(await next.ask(PERSON))).toEqual([]);
  service.tokenAnswers.clear();
  service.expire();
  expect(codesOf(await next.ask(PERSON))).toEqual([]);
  expect(await store.read()).toMatchObject({ generation: 3, lost: false, claim: null });
});

test('a refresh token that ends before its access token is sent shortly before its end', async () => {
  const { clock, store, sandbox } = await startKeptOverSandbox({
    refuseEarlyRefresh: 400,
    expiresIn: (30 * DAY) / SECOND,
    refreshExpiresIn: (2 * DAY) / SECOND,
  });
  await clock.asleep();
  await clock.pass(1.9 * DAY);
  expect(sandbox.exchanges).toHaveLength(1);
  await clock.pass(0.2 * DAY);
  expect(sandbox.exchanges.length).toBeGreaterThan(1);
  expect(sandbox.exchanges.length).toBeLessThan(12);
  expect(await store.read()).toMatchObject({ generation: 1 });
});

test('an import of a spent token over a working set is taken back when the spent one is known to be lost', async () => {
  const service = await startScripted();
  const { ask, clock, store, logged } = await startKept(service);
  await clock.asleep();
  await ask(PERSON);
  const before = (await store.read())!;
  // Its access token works, and its refresh token was exchanged elsewhere.
  const pair = { ...before.pair, refreshToken: 'spent-elsewhere' };
  await store.import({ baseUrl: before.baseUrl, pair, replica: 'hand', after: before });
  await clock.pass(MINUTE);
  expect(await store.read()).toMatchObject({ generation: 3, refusedEarly: true, lost: false });
  service.expire();
  expect(codesOf(await ask(PERSON))).toEqual([]);
  expect(await store.read()).toMatchObject({ generation: 3, set: before.set, lost: false });
  expect(logged.filter(({ msg }) => /import was taken back/.test(String(msg)))).toHaveLength(1);
  expect(service.exchanges.map(({ outcome }) => outcome)).toEqual([
    'answered',
    'invalid-grant',
    'invalid-grant',
    'invalid-grant',
    'answered',
  ]);
});

test.each([false, true])(
  'a loss that a process of an older version recorded beside this one is none, after the expiry the pair is exchanged (the service is known: %s)',
  async (isKnown) => {
    const service = await startScripted(EARLY);
    const clock = new ManualClock();
    const database = timedDatabase(clock.now, clock.elapsed);
    const store = watchStore(database.open);
    const { ask } = await startKept(service, { clock, store });
    await clock.asleep();
    if (isKnown) {
      service.expire();
      await ask(PERSON);
    }
    database.alter(asOlderVersionEnds);
    await clock.pass(MINUTE);
    expect(await store.read()).toMatchObject({ lost: false, refusedEarly: true });
    expect(codesOf(await ask(PERSON))).toEqual([]);
    service.expire();
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(await store.read()).toMatchObject({ generation: isKnown ? 3 : 2, lost: false });
  },
);

test('a fresh access token that is refused as expired is renewed after 30 s, then after longer, and nobody waits half a life', async () => {
  const service = await startScripted();
  const { ask, clock, store } = await startKept(service);
  await clock.asleep();
  await ask(PERSON);
  service.answerAll(refusal('token_expired'));
  service.expire();
  const renewedAt: number[] = [];
  let generation = 2;
  for (let second = 0; second < 600; second += 5) {
    expect(codesOf(await ask(PERSON))).not.toEqual([]);
    const stored = (await store.read())!;
    if (stored.generation > generation) renewedAt.push(second);
    ({ generation } = stored);
    await clock.pass(5 * SECOND);
  }
  const waits = renewedAt.slice(1).map((at, index) => at - renewedAt[index]!);
  expect(waits).toEqual([30, 60, 120, 240]);
  service.answerAll(honest);
  expect(codesOf(await ask(PERSON))).toEqual([]);
});

/** It takes every refusal for a loss, whatever the store has of earlier ones. */
function asOlderVersionEnds({ sets, attempts }: TokenDocument): void {
  const { name, head } = sets[0]!;
  for (const set of sets) set.lost = true;
  attempts.push({
    attempt: 'of an older version',
    set: name,
    generation: head,
    at: 0,
    outcome: 'invalid-grant',
    latencyMs: 1,
    replica: 'older',
  });
}

function alarmsIn(logged: Kept['logged']) {
  return logged.filter(({ trouble }) => trouble === 'early-or-spent');
}

async function troublesOf({ gateway }: Pick<Kept, 'gateway'>): Promise<string[]> {
  const found = (await gateway.metrics.text()).matchAll(/trouble="([a-z-]+)"\} 1$/gm);
  return [...found].map(([, trouble]) => trouble!);
}
