import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, altered, honest, json, text } from '../support/imitations/scripted.ts';
import { cut } from '../support/imitations/hostile-sockets.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';
import { sharingKey } from '../../src/upstream/share.ts';
import { startHeldUpstream } from './held-upstream.ts';

const PERSONS = 'query ($first: Int) { persons(first: $first) { items { id } } }';

interface Persons {
  persons: { items: unknown[] };
}

test.each([2, 100])('%i identical queries at once are one upstream request', async (count) => {
  await using gateway = await startGatewayOverFake();
  const { upstream } = gateway;
  const gate = Promise.withResolvers<void>();
  upstream.answer(after(gate.promise, honest));
  const answers = Array.from({ length: count }, () => gateway.ask<Persons>(PERSONS, { first: 2 }));
  await allInFlight(gateway);
  gate.resolve();
  for (const { data, errors } of await Promise.all(answers)) {
    expect(errors).toBeUndefined();
    expect(data.persons.items).toHaveLength(2);
  }
  expect(sent(gateway)).toEqual([{ first: 2 }, OTHER]);
});

test('queries that differ, even in one variable, are not shared; nor is a query that was answered', async () => {
  await using gateway = await startGatewayOverFake();
  const queries = [{ first: 1 }, { first: 2 }, {}, { first: null }];
  await Promise.all(queries.map((variables) => gateway.ask(PERSONS, variables)));
  expect(gateway.upstream.received).toHaveLength(4);
  await gateway.ask(PERSONS, { first: 1 });
  expect(gateway.upstream.received).toHaveLength(5);
});

test('the first caller leaves and the others still get their answer', async () => {
  await using gateway = await startGatewayOverFake();
  const { upstream } = gateway;
  const gate = Promise.withResolvers<void>();
  upstream.answer(after(gate.promise, honest));
  const caller = new AbortController();
  const left = Promise.allSettled([gateway.ask(PERSONS, { first: 2 }, { signal: caller.signal })]);
  await upstream.arrived(1);
  const staying = [1, 2].map(() => gateway.ask<Persons>(PERSONS, { first: 2 }));
  await allInFlight(gateway);
  caller.abort();
  await left;
  const late = gateway.ask<Persons>(PERSONS, { first: 2 });
  await allInFlight(gateway);
  gate.resolve();
  for (const { data, errors } of await Promise.all([...staying, late])) {
    expect(errors).toBeUndefined();
    expect(data.persons.items).toHaveLength(2);
  }
  expect(await upstream.received[0]!.over).toBe('answered');
  expect(sent(gateway)).toEqual([{ first: 2 }, OTHER, OTHER]);
});

test('when the last caller leaves, the upstream request is aborted, and later callers are not affected', async () => {
  await using gateway = await startGatewayOverFake();
  const { upstream } = gateway;
  upstream.answer(after(new Promise(() => {}), honest));
  const callers = [new AbortController(), new AbortController()];
  const left = Promise.allSettled(
    callers.map(({ signal }) => gateway.ask(PERSONS, { first: 2 }, { signal })),
  );
  await allInFlight(gateway);
  callers[0]!.abort();
  upstream.answer(honest);
  callers[1]!.abort();
  expect(await upstream.received[0]!.over).toBe('cut');
  await left;
  const { data } = await gateway.ask<Persons>(PERSONS, { first: 2 });
  expect(data.persons.items).toHaveLength(2);
});

test('a caller who comes at the moment when the last one leaves gets a new request', async () => {
  await using upstream = await startHeldUpstream();
  const caller = new AbortController();
  const left = upstream.ask('x', { signal: caller.signal });
  await upstream.service.arrived(1);
  caller.abort(new Error('left'));
  const next = upstream.ask('x');
  await expect(left).rejects.toThrow('left');
  upstream.release('x');
  expect(await next).toEqual({ data: { echo: 'x' } });
  expect(upstream.sent()).toEqual(['x', 'x']);
});

const NAME = '{ candidate(id: 1) { name } }';
const RENAME = 'mutation { rename(id: 1, name: "Ada") { name } }';
const OLD = { data: { candidate: { name: 'Candidate 1' } } };
const NEW = { data: { candidate: { name: 'Ada' } } };

test('a query that starts during a mutation joins none from before it, and one that starts after it joins none from during it', async () => {
  await using gateway = await startRich();
  const { upstream } = gateway;
  const old = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  upstream.answer(
    after(old.promise, json(OLD)),
    after(done.promise, honest),
    after(old.promise, json(OLD)),
    honest,
  );
  const answers = [gateway.ask(NAME)];
  await upstream.arrived(1);
  const renaming = gateway.ask(RENAME);
  await upstream.arrived(2);
  answers.push(gateway.ask(NAME));
  await upstream.arrived(3);
  done.resolve();
  await renaming;
  expect(await gateway.ask(NAME)).toEqual(NEW);
  old.resolve();
  expect(await Promise.all(answers)).toEqual([OLD, OLD]);
  expect(upstream.received).toHaveLength(4);
});

test('queries do not join one from before a mutation that failed, since it may have been executed', async () => {
  await using gateway = await startRich();
  const { upstream } = gateway;
  const gate = Promise.withResolvers<void>();
  upstream.answer(after(gate.promise, json(OLD)), cut, json(NEW));
  const before = gateway.ask(NAME);
  await upstream.arrived(1);
  expect((await gateway.ask(RENAME)).errors).toHaveLength(1);
  expect(await gateway.ask(NAME)).toEqual(NEW);
  gate.resolve();
  expect(await before).toEqual(OLD);
});

test('equal mutations are never shared', async () => {
  const { schema, sent: done } = fullService();
  await using gateway = await startRich({}, schema);
  await Promise.all([1, 2, 3].map(() => gateway.ask(RENAME)));
  expect(done.renames).toBe(3);
});

test.each([
  ['a failure', text('', 404), { code: 'UPSTREAM_BAD_RESPONSE' }],
  [
    'an error of the service',
    json({ errors: [{ message: 'No.', extensions: { code: 'NO' } }] }),
    { code: 'NO' },
  ],
  [
    'an error beside data',
    altered((body) => {
      body.errors = [{ message: 'No.', path: ['persons', 'items'], extensions: { code: 'NO' } }];
    }),
    { code: 'NO' },
  ],
])(
  '%s is reported to all waiting callers, to each at its own path',
  async (_what, reply, extensions) => {
    await using gateway = await startGatewayOverFake();
    const { upstream } = gateway;
    const gate = Promise.withResolvers<void>();
    upstream.answer(after(gate.promise, reply));
    const forwarded = [1, 2].map(() => gateway.ask(PERSONS));
    const derived = ['a', 'b', 'c'].map((alias) =>
      gateway.ask(`{ ${alias}: allPersons(limit: 2) { id } }`),
    );
    await allInFlight(gateway);
    gate.resolve();
    for (const { errors } of await Promise.all(forwarded))
      expect(errors).toMatchObject([{ extensions }]);
    const answers = await Promise.all(derived);
    expect(answers.map(({ errors }) => errors?.map(({ path }) => path?.[0]))).toEqual([
      ['a'],
      ['b'],
      ['c'],
    ]);
    for (const { errors } of answers) expect(errors).toMatchObject([{ extensions }]);
    expect(upstream.received.filter((each) => !isOther(each))).toHaveLength(2);
  },
);

test('an interactive query does not join an equal one of a drain, and pressure is reported to all who joined', async () => {
  await using upstream = await startHeldUpstream({
    clock: { ...systemClock, sleep: () => Promise.resolve() },
  });
  const { ask, service } = upstream;
  const pressures: string[] = [];
  const gate = Promise.withResolvers<void>();
  service.answer(
    after(gate.promise, json({}, 429)),
    after(gate.promise, json({ data: { echo: '' } })),
  );
  const drain = (name: string, signal?: AbortSignal) =>
    ask('x', {
      priority: 'drain',
      onPressure: () => pressures.push(name),
      ...(signal && { signal }),
    });
  const leaving = new AbortController();
  const left = Promise.allSettled([drain('left', leaving.signal)]);
  const answers = [drain('one'), drain('other')];
  await service.arrived(1);
  answers.push(ask('x', { onPressure: () => pressures.push('interactive') }));
  await service.arrived(2);
  leaving.abort();
  await left;
  gate.resolve();
  await Promise.all(answers);
  expect(pressures).toEqual(['one', 'other']);
  expect(upstream.sent()).toEqual(['x', 'x', 'x']);
});

test('long queries of the same length have short keys, and those above 64 KB are not shared', () => {
  const long = 'é'.repeat(60_000);
  const bodies = [`${long}1`, `${long}2`, `1${long}`, 'short', long + long];
  const [keys, again] = [1, 2].map(() => bodies.map((body) => sharingKey({ kind: 'query', body })));
  expect(new Set(keys).size).toBe(bodies.length);
  expect(keys!.map((key) => key && key.length < 100)).toEqual([true, true, true, true, undefined]);
  expect(again).toEqual(keys);
});

const OTHER = { first: 42 };

/** Resolves when everything requested so far is in flight: a later request has arrived at the service. */
async function allInFlight(gateway: GatewayOverFake): Promise<void> {
  const caller = new AbortController();
  const { received } = gateway.upstream;
  const before = received.filter(isOther).length;
  void Promise.allSettled([gateway.ask(PERSONS, OTHER, { signal: caller.signal })]);
  for (let count = 1; received.filter(isOther).length === before; count += 1) {
    await gateway.upstream.arrived(count);
  }
  caller.abort();
  await received.findLast(isOther)!.over;
}

function isOther({ body }: { body: string }): boolean {
  return variablesOf(body)['first'] === OTHER.first;
}

function sent({ upstream }: GatewayOverFake): unknown[] {
  return upstream.received.map(({ body }) => variablesOf(body));
}

function variablesOf(body: string): Record<string, unknown> {
  return (JSON.parse(body) as { variables: Record<string, unknown> }).variables;
}

function startRich(config = {}, schema = fullService().schema) {
  return startGatewayOverFake(
    { schema },
    { snapshot: fullSdl, config: { mutations: 'all', ...config } },
  );
}
