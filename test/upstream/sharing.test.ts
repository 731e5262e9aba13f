import fc from 'fast-check';
import { expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { fullSdl, fullService } from '../service/full.ts';
import { after, cut, honest, json, text } from '../service/replies.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { startHeldUpstream } from './held-upstream.ts';

type Step =
  | { readonly do: 'ask' | 'answer'; readonly label: string }
  | { readonly do: 'leave'; readonly caller: number };

const label = fc.constantFrom('x', 'y');
const steps = fc.array(
  fc.oneof<fc.WeightedArbitrary<Step>[]>(
    { weight: 3, arbitrary: fc.record({ do: fc.constant('ask'), label }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('leave'), caller: fc.nat(99) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('answer'), label }) },
  ),
  { maxLength: 20 },
);

test('equal queries in flight are one request, which each caller may leave, and the last one aborts', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      await using upstream = await startHeldUpstream();
      const { service } = upstream;
      /** The callers who wait for the request of a label, and the number of that request. */
      const waiting = new Map<string, { callers: Set<AbortController>; request: number }>();
      const answers = new Map<AbortController, Promise<unknown>>();
      let sent = 0;
      for (const each of history) {
        if (each.do === 'ask') {
          const caller = new AbortController();
          const shared = waiting.get(each.label);
          const asked = upstream.ask(each.label, { signal: caller.signal });
          answers.set(
            caller,
            Promise.resolve(asked).catch((error: unknown) => error),
          );
          if (shared) shared.callers.add(caller);
          else waiting.set(each.label, { callers: new Set([caller]), request: sent++ });
          await service.arrived(sent);
        } else if (each.do === 'leave') {
          const all = [...waiting].flatMap(([of, shared]) =>
            Array.from(shared.callers, (caller) => ({ of, ...shared, caller })),
          );
          if (all.length === 0) continue;
          const { of, callers, caller, request } = all[each.caller % all.length]!;
          callers.delete(caller);
          caller.abort(new Error('left'));
          expect(await answers.get(caller)).toMatchObject({ message: 'left' });
          if (callers.size > 0) continue;
          waiting.delete(of);
          expect(await service.received[request]!.over).toBe('cut');
        } else {
          const { callers = [] } = waiting.get(each.label) ?? {};
          waiting.delete(each.label);
          upstream.release(each.label);
          for (const caller of callers)
            expect(await answers.get(caller)).toEqual({ data: { echo: each.label } });
          upstream.hold(each.label);
        }
      }
      expect(service.received).toHaveLength(sent);
      for (const { callers } of waiting.values()) for (const caller of callers) caller.abort();
      await Promise.all(answers.values());
    }),
    { numRuns: randomRuns(200) },
  );
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
  const { service } = gateway;
  const old = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  service.answer(
    after(old.promise, json(OLD)),
    after(done.promise, honest),
    after(old.promise, json(OLD)),
    honest,
  );
  const answers = [gateway.ask(NAME)];
  await service.arrived(1);
  const renaming = gateway.ask(RENAME);
  await service.arrived(2);
  answers.push(gateway.ask(NAME));
  await service.arrived(3);
  done.resolve();
  await renaming;
  expect(await gateway.ask(NAME)).toEqual(NEW);
  old.resolve();
  expect(await Promise.all(answers)).toEqual([OLD, OLD]);
  expect(service.received).toHaveLength(4);
});

test('queries do not join one from before a mutation that failed, since it may have been executed', async () => {
  await using gateway = await startRich();
  const { service } = gateway;
  const gate = Promise.withResolvers<void>();
  service.answer(after(gate.promise, json(OLD)), cut, json(NEW));
  const before = gateway.ask(NAME);
  await service.arrived(1);
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
  await using gateway = await startGatewayOverService();
  const { service } = gateway;
  const gate = Promise.withResolvers<void>();
  service.answer(after(gate.promise, reply));
  const aliases = ['a', 'b', 'c'];
  const answers = aliases.map((alias) => gateway.ask(`{ ${alias}: allPersons(limit: 2) { id } }`));
  const other = gateway.ask('{ allPersons(limit: 3) { id } }');
  await service.arrived(2);
  gate.resolve();
  for (const [index, { errors }] of (await Promise.all(answers)).entries()) {
    expect(errors).toMatchObject([{ path: [aliases[index]], extensions: { code } }]);
  }
  await other;
  expect(service.received).toHaveLength(2);
});

test('an interactive query does not join an equal one of a drain', async () => {
  await using upstream = await startHeldUpstream();
  const { ask, service } = upstream;
  const gate = Promise.withResolvers<void>();
  const late = after(gate.promise, json({ data: { echo: '' } }));
  service.answer(late, late);
  const answers = [ask('x', { priority: 'drain' }), ask('x', { priority: 'drain' })];
  await service.arrived(1);
  answers.push(ask('x'));
  await service.arrived(2);
  gate.resolve();
  await Promise.all(answers);
  expect(upstream.sent()).toEqual(['x', 'x']);
});

function startRich(schema = fullService().schema) {
  return startGatewayOverService({ schema }, { snapshot: fullSdl, config: { mutations: 'all' } });
}
