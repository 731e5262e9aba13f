import { expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import type { Reply } from '../service/service.ts';
import { after, altered, honest, json } from '../service/replies.ts';
import { all, ask, list, next, partsOf, whole } from '../support/clients/multipart.ts';

test('the first records are sent after one page, before the second page has arrived', async () => {
  await using gateway = await startGatewayOverService({ persons: 200 });
  const { service } = gateway;
  const gate = Promise.withResolvers<void>();
  service.answer(honest, after(gate.promise, honest));
  const parts = partsOf(await ask(gateway, '{ allPersons @stream { id } }'));
  expect(await next(parts)).toEqual({ data: { allPersons: [] }, hasNext: true });
  expect((await next(parts)).incremental).toMatchObject([{ path: ['allPersons', 0] }]);
  gate.resolve();
  expect((await next(parts)).incremental?.[0]?.path[1]).toBeGreaterThan(40);
  for (const { body } of service.received) expect(body).not.toContain('@stream');
  await parts.return();
});

test.each([
  [0, 0, 0],
  [50, 50, 1],
  [60, 60, 1],
  [1000, 137, 3],
])(
  'with initialCount %i the first payload has %i records, and then each page is one payload',
  async (count, begun, pages) => {
    await using gateway = await startGatewayOverService();
    const parts = await all(
      gateway,
      'query ($count: Int!) { allPersons @stream(initialCount: $count) { id firstName } }',
      { count },
    );
    const [first, ...later] = parts;
    expect(list(first)).toHaveLength(begun);
    const streamed = later.flatMap(({ incremental = [] }) => incremental);
    expect(streamed).toHaveLength(gateway.service.stats.requests.graphql - pages);
    let sent = begun;
    for (const { items, path } of streamed) {
      expect(path).toEqual(['allPersons', sent]);
      sent += items!.length;
    }
    expect(whole(parts)).toEqual(
      gateway.service.persons.all().map(({ id, firstName }) => ({ id, firstName })),
    );
    // A list that ends within the first records is a whole answer.
    expect(parts.map(({ hasNext }) => hasNext)).toEqual(
      count > 137 ? [undefined] : [true, ...streamed.map(() => true), false],
    );
  },
);

test('a stream inside fragments keeps its alias, its label and its filters', async () => {
  await using gateway = await startGatewayOverService({ persons: 120 });
  const parts = await all(
    gateway,
    `query ($yes: Boolean!, $limit: Int) { ...Root @include(if: $yes) }
     fragment Root on Query {
       ... { people: allPersons(limit: $limit) @stream(if: $yes, label: "people", initialCount: 1) { ...Name } }
       none: allPersons @skip(if: $yes) @stream { id }
     }
     fragment Name on Person { id: firstName hidden: id @skip(if: $yes) }`,
    { yes: true, limit: 70 },
  );
  expect(parts.slice(1, -1).map(({ incremental }) => incremental?.[0]?.label)).toEqual([
    'people',
    'people',
  ]);
  expect(Object.keys(parts[0]?.data ?? {})).toEqual(['people']);
  expect(whole(parts, 'people')).toEqual(
    gateway.service.persons.slice(0, 70).map(({ firstName }) => ({ id: firstName })),
  );
});

test('other root fields are in the first payload, and several streams are sent one after the other', async () => {
  await using gateway = await startGatewayOverService();
  const parts = await all(
    gateway,
    `{ a: allPersons @stream(initialCount: 1) { id }
       persons(first: 2) { items { id } }
       b: allPersons(limit: 60) @stream { firstName }
       c: allPersons(limit: 3) { id } }`,
  );
  const { persons, c } = parts[0]!.data!;
  const ids = gateway.service.persons.all().map(({ id }) => ({ id }));
  expect({ persons, c }).toEqual({ persons: { items: ids.slice(0, 2) }, c: ids.slice(0, 3) });
  expect(whole(parts, 'a')).toEqual(ids);
  expect(whole(parts, 'b')).toHaveLength(60);
  const keys = parts.flatMap(({ incremental = [] }) => incremental.map(({ path }) => path[0]));
  expect(keys.lastIndexOf('a')).toBeLessThan(keys.indexOf('b'));
});

const failing = json({ errors: [{ message: 'The index is rebuilding.' }] });

test.each<[string, initialCount: number, begun: number, replies: [Reply, ...Reply[]], object]>([
  [
    'a page fails',
    10,
    10,
    [honest, honest, failing],
    {
      message: expect.stringMatching(
        /The index is rebuilding\. The records before this error are valid\. Go on behind them/,
      ) as string,
      extensions: { code: 'DRAIN_INTERRUPTED' },
    },
  ],
  [
    'a page within the first payload fails',
    90,
    48,
    [honest, failing],
    { extensions: { code: 'DRAIN_INTERRUPTED', drained: 48 } },
  ],
  [
    'the list is longer than one operation may drain',
    0,
    0,
    [honest],
    { extensions: { code: 'DRAIN_LIMIT_EXCEEDED', drained: 160, max: 160 } },
  ],
])('when %s, the earlier records remain, and the error says where to go on', async (...row) => {
  const [, count, begun, replies, error] = row;
  const config = { drainMaxItems: 160, drainConcurrency: 1 };
  await using gateway = await startGatewayOverService({ persons: 300 }, { config });
  const { service } = gateway;
  service.answer(...replies);
  const parts = await all(gateway, `{ allPersons @stream(initialCount: ${count}) { id } }`);
  expect(list(parts[0])).toHaveLength(begun);
  const drained = whole(parts).length;
  const { incremental, hasNext } = parts.at(-1)!;
  expect(incremental).toMatchObject([
    { items: null, path: ['allPersons', drained], errors: [{ path: ['allPersons'], ...error }] },
  ]);
  expect(hasNext).toBe(false);
  service.answer(honest);
  const { resumeAfter } = incremental![0]!.errors![0]!.extensions;
  const rest = await all(
    gateway,
    'query ($after: String) { allPersons(after: $after, limit: 60) @stream { id } }',
    { after: resumeAfter },
  );
  expect([...whole(parts), ...whole(rest)]).toEqual(
    service.persons.slice(0, drained + 60).map(({ id }) => ({ id })),
  );
});

test('when the first page fails, the answer is whole', async () => {
  await using gateway = await startGatewayOverService();
  gateway.service.answer(failing);
  expect(await all(gateway, '{ allPersons @stream(initialCount: 1) { id } }')).toEqual([
    {
      data: { allPersons: null },
      errors: [{ message: 'The index is rebuilding.', path: ['allPersons'] }],
    },
  ]);
});

test('the path of an error inside a record has the position in the whole list, in the payload of its page', async () => {
  await using gateway = await startGatewayOverService();
  const bad = altered((answer) => {
    answer.data['persons']!.items[2]!['firstName'] = null;
    const path = ['persons', 'items', 2, 'firstName'];
    answer.errors = [
      { message: 'Locked.', path, extensions: { code: 'LOCKED' } },
      { message: 'Also late.', path: ['persons'] },
      { message: 'Locked twice.', path },
    ];
  });
  gateway.service.answer(honest, bad, honest);
  const parts = await all(gateway, '{ allPersons @stream { id firstName } }');
  const [second] = parts[2]?.incremental ?? [];
  expect(second?.path).toEqual(['allPersons', 48]);
  expect(second?.items?.[2]).toMatchObject({ firstName: null });
  const path = ['allPersons', 50, 'firstName'];
  expect(second?.errors).toHaveLength(3);
  expect(second?.errors).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ message: 'Locked.', path, extensions: { code: 'LOCKED' } }),
      expect.objectContaining({ message: 'Locked twice.', path }),
      expect.objectContaining({ message: 'Also late.', path: ['allPersons'] }),
    ]),
  );
  const others = parts.filter((_, index) => index !== 2);
  expect(JSON.stringify(others)).not.toContain('errors');
  expect(whole(parts)).toHaveLength(137);
});

test.each([
  ['{ allPersons @stream(initialCount: -1) { id } }', {}],
  ['query ($n: Int) { allPersons @stream(initialCount: $n) { id } }', { n: null }],
  ['query ($n: Boolean = true) { allPersons @stream(if: $n) { id } }', { n: null }],
  ['{ personsConnection { edges @stream { cursor } } }', {}],
  ['{ persons @stream { items { id } } }', {}],
])('a mistake is refused before anything is requested: %s %o', async (query, variables) => {
  await using gateway = await startGatewayOverService();
  const parts = await all(gateway, query, variables);
  expect(parts).toMatchObject([{ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] }]);
  expect(gateway.service.stats.requests.graphql).toBe(0);
});

test('every payload of a stream says where to go on behind its records', async () => {
  await using gateway = await startGatewayOverService();
  const query =
    'query ($after: String) { allPersons(after: $after) @stream(initialCount: 7) { id } }';
  const ids = gateway.service.persons.all().map(({ id }) => ({ id }));
  let sent = 7;
  const first = await all(gateway, query);
  const increments = first.flatMap(({ incremental = [] }) => incremental);
  for (const { items, extensions } of increments) {
    sent += items!.length;
    expect(whole(await all(gateway, query, { after: extensions!.resumeAfter }))).toEqual(
      ids.slice(sent),
    );
  }
  expect(sent).toBe(137);
});

test('a client that falls behind the walk that it shares gets the rest once', async () => {
  await using gateway = await startGatewayOverService({ persons: 1_500 });
  const query = '{ allPersons @stream { id } }';
  const slow = partsOf(await ask(gateway, query));
  const parts = [await next(slow), await next(slow)];
  expect(whole(await all(gateway, query))).toHaveLength(1_500);
  for await (const part of slow) parts.push(part);
  expect(whole(parts)).toEqual(gateway.service.persons.all().map(({ id }) => ({ id })));
});

test('after a stream that fails, the next one follows', async () => {
  await using gateway = await startGatewayOverService({}, { config: { drainMaxItems: 100 } });
  const parts = await all(gateway, '{ a: allPersons @stream { id } b: allPersons @stream { id } }');
  expect(parts.at(-1)?.incremental?.[0]?.path[0]).toBe('b');
  expect(parts.findIndex(({ hasNext }) => hasNext !== true)).toBe(parts.length - 1);
});
