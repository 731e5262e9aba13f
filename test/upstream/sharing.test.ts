import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codedError } from '../../src/errors.ts';
import type { Failure, Priority } from '../../src/upstream/request.ts';
import { shareQueries } from '../../src/upstream/share.ts';
import { after, json, text } from '../service/replies.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { randomRuns } from '../support/random/random-runs.ts';
import { answer, heldRequests, query, senderWith } from './held-requests.ts';

const step = fc.record({
  does: fc.constantFrom('asks', 'asks', 'asks', 'leaves', 'is answered', 'mutates', 'has mutated'),
  // V8 hashes longer strings by their length only, so these are not shared.
  body: fc.constantFrom('x', 'y', 'x'.repeat(16_384)),
  priority: fc.constantFrom<Priority>('interactive', 'interactive', 'drain'),
  at: fc.nat(99),
});

test('equal queries in flight are one request, unless a mutation begins or ends in between, and each caller may leave it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { sent, send } = heldRequests();
      const share = shareQueries(send);
      /** The number of the request that a query joins, by its priority and body. */
      const joined = new Map<string, number>();
      /** The callers who wait, and the numbers of their requests. */
      const waiting = new Map<AbortController, { request: number; outcome: Promise<unknown> }>();
      const mutations: { request: number; outcome: Promise<unknown> }[] = [];
      const left: Promise<unknown>[] = [];
      const stopJoining = (request: number) => {
        for (const [key, number] of joined) if (number === request) joined.delete(key);
      };
      for (const { does, body, priority, at } of steps) {
        const [caller, theirs] = [...waiting][at % waiting.size] ?? [];
        const before = sent.length;
        if (does === 'asks') {
          const asking = new AbortController();
          const key = `${priority} ${body}`;
          const request = joined.get(key) ?? before;
          if (body.length < 16_384) joined.set(key, request);
          const outcome = share(query(body), senderWith({ priority, signal: asking.signal }));
          waiting.set(asking, { request, outcome: outcome.catch((error: unknown) => error) });
          expect(sent.length).toBe(Math.max(before, request + 1));
        } else if (does === 'mutates') {
          joined.clear();
          const outcome = share({ kind: 'mutation', body: 'x' }, senderWith());
          mutations.push({ request: before, outcome });
          expect(sent.length).toBe(before + 1);
        } else if (does === 'has mutated' && mutations.length > 0) {
          const [mutation] = mutations.splice(at % mutations.length, 1);
          sent[mutation!.request]!.end(at % 2 === 0 ? answer() : FAILURE);
          await mutation!.outcome;
          joined.clear();
        } else if (does === 'leaves' && caller) {
          const { request, outcome } = theirs!;
          waiting.delete(caller);
          caller.abort(new Error('left'));
          left.push(outcome);
          const isLast = [...waiting.values()].every((each) => each.request !== request);
          expect(sent[request]!.sender.signal.aborted).toBe(isLast);
          if (isLast) stopJoining(request);
        } else if (does === 'is answered' && caller) {
          const result = at % 2 === 0 ? answer() : FAILURE;
          sent[theirs!.request]!.end(result);
          for (const [each, { request, outcome }] of waiting) {
            if (request !== theirs!.request) continue;
            expect(await outcome).toBe(result);
            waiting.delete(each);
          }
          stopJoining(theirs!.request);
        }
      }
      for (const outcome of left) expect(await outcome).toMatchObject({ message: 'left' });
    }),
    { numRuns: randomRuns(2_000) },
  );
});

test('nothing is sent for a caller who has left', () => {
  const { sent, send } = heldRequests();
  const signal = AbortSignal.abort(new Error('left'));
  expect(() => shareQueries(send)(query('x'), senderWith({ signal }))).toThrow('left');
  expect(sent).toEqual([]);
});

const FAILURE: Failure = { kind: 'failure', error: codedError('UPSTREAM_TIMEOUT', 'Too late.') };

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
