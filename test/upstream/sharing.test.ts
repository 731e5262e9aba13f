import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, honest, json, text } from '../support/imitations/scripted.ts';
import { cut } from '../support/imitations/hostile-sockets.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';
import { sharingKey } from '../../src/upstream/share.ts';
import { startHeldUpstream } from './held-upstream.ts';

test('a hundred equal queries at once are one request; queries that differ, or that come after its answer, are not', async () => {
  await using upstream = await startHeldUpstream();
  const answers = Array.from({ length: 100 }, () => upstream.ask('x'));
  const other = upstream.ask('y');
  await upstream.service.arrived(2);
  for (const label of ['x', 'y']) upstream.release(label);
  expect(await Promise.all(answers)).toEqual(answers.map(() => ({ data: { echo: 'x' } })));
  expect(await other).toEqual({ data: { echo: 'y' } });
  expect(upstream.sent()).toEqual(['x', 'y']);
  await upstream.ask('x');
  expect(upstream.sent()).toEqual(['x', 'y', 'x']);
});

test('when one caller leaves, those who joined are answered; when the last one leaves, the request is aborted', async () => {
  await using upstream = await startHeldUpstream();
  const { service } = upstream;
  const callers = [new AbortController(), new AbortController()];
  const left = callers.map(({ signal }) => upstream.ask('x', { signal }));
  const staying = upstream.ask('x');
  await service.arrived(1);
  callers[0]!.abort(new Error('left'));
  await expect(left[0]).rejects.toThrow('left');
  const late = upstream.ask('x');
  upstream.release('x');
  for (const answer of [left[1], staying, late]) {
    expect(await answer).toEqual({ data: { echo: 'x' } });
  }
  expect(upstream.sent()).toEqual(['x']);

  const last = new AbortController();
  const alone = upstream.ask('y', { signal: last.signal });
  await service.arrived(2);
  last.abort(new Error('left'));
  await expect(alone).rejects.toThrow('left');
  expect(await service.received[1]!.over).toBe('cut');
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
  await using gateway = await startRich(schema);
  await Promise.all([1, 2, 3].map(() => gateway.ask(RENAME)));
  expect(done.renames).toBe(3);
});

test.each([
  ['a failure', text('', 404), 'UPSTREAM_BAD_RESPONSE'],
  ['an error', json({ errors: [{ message: 'No.', extensions: { code: 'NO' } }] }), 'NO'],
])('%s is reported to all who share a request, to each at its own path', async (_, reply, code) => {
  await using gateway = await startGatewayOverFake();
  const { upstream } = gateway;
  const gate = Promise.withResolvers<void>();
  upstream.answer(after(gate.promise, reply));
  const aliases = ['a', 'b', 'c'];
  const answers = aliases.map((alias) => gateway.ask(`{ ${alias}: allPersons(limit: 2) { id } }`));
  const other = gateway.ask('{ allPersons(limit: 3) { id } }');
  await upstream.arrived(2);
  gate.resolve();
  for (const [index, { errors }] of (await Promise.all(answers)).entries()) {
    expect(errors).toMatchObject([{ path: [aliases[index]], extensions: { code } }]);
  }
  await other;
  expect(upstream.received).toHaveLength(2);
});

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

function startRich(schema = fullService().schema) {
  return startGatewayOverFake({ schema }, { snapshot: fullSdl, config: { mutations: 'all' } });
}
