import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codesOf } from '../support/gateway/codes.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import type { Reply } from '../service/service.ts';
import { after, altered, honest, json } from '../service/replies.ts';
import { all, ask, partsOf, putTogether, type Payload } from '../support/clients/multipart.ts';
import { randomRuns } from '../support/random/random-runs.ts';

const personsIn = (parts: Payload[]) => putTogether(parts)!['allPersons'] as unknown[];

test('the first records are sent after one page, before the second page has arrived', async () => {
  await using gateway = await startGatewayOverService({ persons: 200 });
  const { service } = gateway;
  const gate = Promise.withResolvers<void>();
  service.answer(honest, after(gate.promise, honest));
  const parts = partsOf(await ask(gateway, '{ allPersons @stream { id } }'));
  expect((await parts.next()).value).toEqual({ data: { allPersons: [] }, hasNext: true });
  expect((await parts.next()).value!.incremental).toMatchObject([{ path: ['allPersons', 0] }]);
  gate.resolve();
  expect((await parts.next()).value!.incremental?.[0]?.path[1]).toBeGreaterThan(40);
  for (const { body } of service.received) expect(body).not.toContain('@stream');
  await parts.return();
});

test('a program that leaves a stream reads its reason at once, and the service is left', async () => {
  await using gateway = await startGatewayOverService({ persons: 200 });
  const { service } = gateway;
  const serviceLeft = Promise.withResolvers<void>();
  service.answer(honest, (response) => void response.once('close', serviceLeft.resolve));
  const leaving = new AbortController();
  const leavable = {
    fetch: (path: string, init?: RequestInit) =>
      gateway.fetch(path, { ...init, signal: leaving.signal }),
  };
  const parts = partsOf(await ask(leavable, '{ allPersons @stream { id } }'));
  await parts.next();
  await parts.next();
  const reading = parts.next().catch((error: unknown) => error);
  await service.arrived(2);
  const reason = new Error('The tab was closed.');
  leaving.abort(reason);
  expect(await reading).toBe(reason);
  await serviceLeft.promise;
});

const BOTH = `query ($limit: Int, $yes: Boolean!) { ...Root @include(if: $yes) }
  fragment Root on Query {
    ... { a: allPersons(limit: $limit) @stream(if: $yes, label: "of \\"a\\"") { ...Name } }
    persons(first: 2) { items { id } }
    b: allPersons(limit: 120) @stream(initialCount: 3) { id }
    none: allPersons @skip(if: $yes) @stream { id }
  }
  fragment Name on Person { firstName hidden: id @skip(if: $yes) }`;

/** Some records of each page fail, where their first names are selected. */
const damaged = altered((answer) => {
  const errors = answer.data['persons']!.items.flatMap((item, at) => {
    if (at % 20 !== 2 || !('firstName' in item)) return [];
    item['firstName'] = null;
    const path = ['persons', 'items', at, 'firstName'];
    return { message: 'Locked.', path, extensions: { code: 'LOCKED' } };
  });
  if (errors.length > 0) answer.errors = [{ message: 'Also late.', path: ['persons'] }, ...errors];
});

test('the parts of streams are the whole answer, each with its label and the errors of its records', async () => {
  await using gateway = await startGatewayOverService();
  gateway.service.answer(damaged);
  await fc.assert(
    fc.asyncProperty(fc.option(fc.nat(140)), async (limit) => {
      const variables = { limit, yes: true };
      const { data, errors: expected = [] } = await gateway.ask(BOTH, variables);
      const parts = await all(gateway, BOTH, variables);
      expect(putTogether(parts)).toEqual(data);
      const [first, ...later] = parts;
      expect(first!.data).toMatchObject({ a: [], b: [] });
      const increments = later.flatMap(({ incremental = [] }) => incremental);
      for (const { path, label, items, errors = [] } of increments) {
        expect(label).toBe(path[0] === 'a' ? 'of "a"' : undefined);
        const [from, to] = [Number(path[1]), Number(path[1]) + items!.length];
        for (const { path: [, at = from] = [] } of errors) {
          expect([at, Number(at) >= from && Number(at) < to]).toEqual([at, true]);
        }
      }
      const errors = [...parts, ...increments].flatMap((part) => part.errors ?? []);
      expect(textsOf(errors)).toEqual(textsOf(expected));
      expect(errors.length > 0).toBe(limit === null || limit > 2);
      const lines = gateway.logged.splice(0).filter(({ msg }) => msg === 'request');
      const code = errors.length > 0 ? 'OTHER' : undefined;
      expect(lines.map((line) => line['code'])).toEqual([code, code]);
      const flags = [true, ...increments.map(() => true), false];
      expect(parts.map(({ hasNext }) => hasNext)).toEqual(parts.length > 1 ? flags : [undefined]);
    }),
    { numRuns: randomRuns(200) },
  );
});

/** An error without a place in a record may be in several parts. */
const textsOf = (errors: readonly object[]) => new Set(errors.map((each) => JSON.stringify(each)));

const failing = json({ errors: [{ message: 'The index is rebuilding.' }] });

test.each<[string, replies: [Reply, ...Reply[]], object]>([
  [
    'a page fails',
    [honest, honest, failing],
    {
      message: expect.stringMatching(
        /The index is rebuilding\. A stream has delivered them;.* Go on behind them/,
      ) as string,
      extensions: { code: 'DRAIN_INTERRUPTED' },
    },
  ],
  [
    'the list is longer than one operation may drain',
    [honest],
    { extensions: { code: 'DRAIN_LIMIT_EXCEEDED', drained: 160, max: 160 } },
  ],
])(
  'when %s, the earlier records remain, and every payload and the error say where to go on',
  async (_, replies, error) => {
    const config = { drainMaxItems: 160, drainConcurrency: 1 };
    await using gateway = await startGatewayOverService({ persons: 300 }, { config });
    const { service } = gateway;
    service.answer(...replies);
    const parts = await all(gateway, '{ allPersons @stream { id } }');
    const drained = personsIn(parts);
    const last = {
      path: ['allPersons', drained.length],
      errors: [{ path: ['allPersons'], ...error }],
    };
    expect(parts.at(-2)).toMatchObject({ incremental: [{ items: null, ...last }] });
    service.answer(honest);
    let sent = 0;
    const increments = parts.flatMap(({ incremental = [] }) => incremental);
    const query = 'query ($after: String) { allPersons(after: $after, limit: 60) @stream { id } }';
    for (const { items, errors, extensions } of increments) {
      sent += items?.length ?? 0;
      const { resumeAfter } = (errors?.[0]!.extensions ?? extensions)!;
      const rest = personsIn(await all(gateway, query, { after: resumeAfter }));
      expect([...drained.slice(0, sent), ...rest]).toEqual(
        service.persons.slice(0, sent + 60).map(({ id }) => ({ id })),
      );
    }
    expect(sent).toBe(drained.length);
  },
);

test('a client that falls behind the walk that it shares gets the rest once', async () => {
  await using gateway = await startGatewayOverService({ persons: 1_500 });
  const query = '{ allPersons @stream { id } }';
  const slow = partsOf(await ask(gateway, query));
  const parts = [(await slow.next()).value!, (await slow.next()).value!];
  expect(personsIn(await all(gateway, query))).toHaveLength(1_500);
  for await (const part of slow) parts.push(part);
  expect(personsIn(parts)).toEqual(gateway.service.persons.all().map(({ id }) => ({ id })));
});

test('a stream with null for its condition is refused', async () => {
  await using gateway = await startGatewayOverService();
  const query = 'query ($n: Boolean = true) { allPersons @stream(if: $n) { id } }';
  expect(codesOf(await (await ask(gateway, query, { n: null })).json())).toEqual([
    'BAD_USER_INPUT',
  ]);
});

test('after a stream that fails, the next one follows', async () => {
  await using gateway = await startGatewayOverService({}, { config: { drainMaxItems: 100 } });
  const parts = await all(gateway, '{ a: allPersons @stream { id } b: allPersons @stream { id } }');
  expect(parts.at(-2)?.incremental?.[0]?.path[0]).toBe('b');
  expect(parts.findIndex(({ hasNext }) => hasNext !== true)).toBe(parts.length - 1);
});
