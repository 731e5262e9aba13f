import { describe, expect, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, altered, honest, json } from '../support/imitations/scripted.ts';
import { silence } from '../support/imitations/hostile-sockets.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { all, ask, next, partsOf, putTogether } from '../support/clients/multipart.ts';

interface Connection {
  edges: { cursor: string; node: { id: string } }[];
  pageInfo: { endCursor: string };
}

test('the first edges are sent after one page, before the second page has arrived', async () => {
  await using gateway = await startGatewayOverFake({ persons: 600 });
  const { upstream } = gateway;
  const gate = Promise.withResolvers<void>();
  upstream.answer(honest, after(gate.promise, honest));
  const query = '{ personsConnection(first: 500) { edges @stream { cursor node { id } } } }';
  const parts = partsOf(await ask(gateway, query));
  expect(await next(parts)).toEqual({ data: { personsConnection: { edges: [] } }, hasNext: true });
  const { incremental } = await next(parts);
  expect(incremental).toMatchObject([{ path: ['personsConnection', 'edges', 0] }]);
  expect(incremental![0]!.items).toHaveLength(50);
  gate.resolve();
  expect((await next(parts)).incremental).toMatchObject([
    { path: ['personsConnection', 'edges', 50] },
  ]);
  await parts.return();
});

test.each(['edges', 'nodes'])(
  '%s are sent in one payload for each page, exactly `first` of them',
  async (list) => {
    await using gateway = await startGatewayOverSandbox({ persons: 500 });
    const parts = await all(
      gateway,
      `query ($count: Int) {
       people: personsConnection(first: 230) { list: ${list} @stream(initialCount: $count, label: "l") { __typename } }
     }`,
      { count: 60 },
    );
    const streamed = parts.flatMap(({ incremental = [] }) => incremental);
    expect(streamed.map(({ path, items }) => [...path, items!.length])).toEqual([
      ['people', 'list', 60, 40],
      ['people', 'list', 100, 50],
      ['people', 'list', 150, 50],
      ['people', 'list', 200, 30],
    ]);
    expect(streamed.map(({ label }) => label)).toEqual(['l', 'l', 'l', 'l']);
    expect(gateway.sandbox.stats.requests.graphql).toBe(5);
  },
);

describe('in parts', () => {
  test.each([
    `{ personsConnection(first: 120) { edges @stream { cursor node { id } } pageInfo { endCursor hasNextPage } } }`,
    `{ personsConnection(first: 120) {
       edges @stream(label: "q$stream$c", initialCount: 5) { cursor node { __typename id } }
       ... @defer(label: "q$defer$c") { pageInfo { startCursor endCursor hasNextPage hasPreviousPage } }
     } }`,
    `{ personsConnection(first: 120) { totalCount edges @stream { node { id } } nodes @stream(initialCount: 70) { firstName } } }`,
    `{ personsConnection(first: 60) { nodes { id } edges @stream { node { firstName } } } }`,
    `{ personsConnection(first: 60) { ... @defer { edges @stream(initialCount: 2) { node { id } } } } }`,
    `{ ... @defer { personsConnection(first: 60) { edges @stream { node { id } } } } persons { items { id } } }`,
    `{ a: personsConnection(first: 60) { ...Edges } b: personsConnection(first: 2) { ...Edges } }
   fragment Edges on PersonConnection { edges @stream { node { ...Name @defer } } }
   fragment Name on Person { firstName }`,
    `{ personsConnection(last: 60) { edges @stream(initialCount: 1) { node { id } } pageInfo { hasPreviousPage } } }`,
    `{ personsConnection(first: 0) { edges @stream { node { id } } pageInfo { hasNextPage } } }`,
    `{ personsConnection { edges @stream { node { id } } } allPersons @stream { id } persons(first: 3) { items @stream { id } } }`,
  ])('the joined parts equal the whole answer: %s', async (query) => {
    await using gateway = await startGatewayOverSandbox();
    const parts = await all(gateway, query);
    const { data } = await gateway.ask(query);
    expect(putTogether(parts)).toEqual(data);
    expect(parts.length).toBeGreaterThan(1);
    expect(parts.map(({ hasNext }) => hasNext)).toEqual([...parts.slice(1).map(() => true), false]);
  });
});

test('a deferred pageInfo is sent when the last edge has been read', async () => {
  await using gateway = await startGatewayOverFake({ persons: 600 });
  const { upstream } = gateway;
  const gate = Promise.withResolvers<void>();
  upstream.answer(honest, honest, after(gate.promise, honest));
  const parts = partsOf(
    await ask(
      gateway,
      `{ personsConnection(first: 150) {
           edges @stream(label: "edges") { cursor node { id } }
           ... @defer(label: "info") { pageInfo { endCursor } }
         } }`,
    ),
  );
  expect((await next(parts)).data).toEqual({ personsConnection: { edges: [] } });
  const before = [await next(parts), await next(parts)];
  gate.resolve();
  const rest = [];
  for await (const part of parts) rest.push(part);
  const increments = [...before, ...rest].flatMap(({ incremental = [] }) => incremental);
  expect(before.flatMap(({ incremental = [] }) => incremental.map(({ label }) => label))).toEqual([
    'edges',
    'edges',
  ]);
  const edges = increments.flatMap(({ items }) => items ?? []) as Connection['edges'];
  const [info] = increments.filter(({ label }) => label === 'info');
  expect(edges).toHaveLength(150);
  expect(info).toMatchObject({
    path: ['personsConnection'],
    data: { pageInfo: { endCursor: edges.at(-1)!.cursor } },
  });
});

test('when a later page fails, the earlier edges remain, and resumeAfter resumes after them', async () => {
  await using gateway = await startGatewayOverFake({ persons: 300 });
  const { upstream } = gateway;
  upstream.answer(honest, json({ errors: [{ message: 'The index is rebuilding.' }] }));
  const query = `query ($after: String) { personsConnection(first: 200, after: $after) {
    edges @stream(initialCount: 10) { cursor node { id } } } }`;
  const parts = await all(gateway, query);
  const { edges } = (putTogether(parts.slice(0, -1)) as { personsConnection: Connection })
    .personsConnection;
  expect(edges).toHaveLength(50);
  const failed = parts.at(-1);
  expect(failed?.incremental).toMatchObject([
    {
      items: null,
      path: ['personsConnection', 'edges', 50],
      errors: [
        {
          message: expect.stringContaining('The index is rebuilding.'),
          path: ['personsConnection', 'edges'],
          extensions: {
            code: 'DRAIN_INTERRUPTED',
            drained: 50,
            resumeAfter: edges.at(-1)!.cursor,
          },
        },
      ],
    },
  ]);
  expect(failed?.hasNext).toBe(false);
  upstream.answer(honest);
  const rest = await all(gateway, query, { after: edges.at(-1)!.cursor });
  const { edges: further } = (putTogether(rest) as { personsConnection: Connection })
    .personsConnection;
  const ids = [...edges, ...further].map(({ node }) => node.id);
  expect(new Set(ids).size).toBe(250);
});

test('when the first page fails, the connection is null, and the answer is whole', async () => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(json({ errors: [{ message: 'No.' }] }));
  const query = '{ personsConnection(first: 200) { edges @stream { node { id } } } }';
  expect(await all(gateway, query)).toMatchObject([
    {
      data: { personsConnection: null },
      errors: [{ message: 'No.', path: ['personsConnection'] }],
    },
  ]);
});

test('the path of an error inside a record has the position in the whole list, in the payload of its page', async () => {
  await using gateway = await startGatewayOverFake({ persons: 120 });
  const bad = altered((answer) => {
    answer.data['persons']!.items[2]!['firstName'] = null;
    answer.errors = [
      { message: 'Locked.', path: ['persons', 'items', 2, 'firstName'] },
      { message: 'Also late.', path: ['persons'] },
    ];
  });
  gateway.upstream.answer(honest, bad);
  const parts = await all(
    gateway,
    '{ personsConnection(first: 100) { edges @stream(initialCount: 3) { node { firstName } } } }',
  );
  const [, , second] = parts;
  expect(second?.incremental?.[0]?.path).toEqual(['personsConnection', 'edges', 50]);
  expect(second?.incremental?.[0]?.errors).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        message: 'Locked.',
        path: ['personsConnection', 'edges', 52, 'node', 'firstName'],
      }),
      expect.objectContaining({ message: 'Also late.', path: ['personsConnection'] }),
    ]),
  );
  expect(JSON.stringify(parts.toSpliced(2, 1))).not.toContain('errors');
});

test('when a client leaves, the request in flight is aborted, and no further one is sent', async () => {
  await using gateway = await startGatewayOverFake({ persons: 600 });
  const { upstream } = gateway;
  upstream.answer(honest, silence, honest);
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  const query = '{ personsConnection(first: 500) { edges @stream { node { id } } } }';
  const response = await fetch(`${server.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'multipart/mixed' },
    body: JSON.stringify({ query }),
  });
  const parts = partsOf(response);
  await next(parts);
  await next(parts);
  await upstream.arrived(2);
  await parts.return();
  expect(await upstream.received[1]!.over).toBe('cut');
  expect((await gateway.ask('{ persons { items { id } } }')).errors).toBeUndefined();
  expect(upstream.received).toHaveLength(3);
  await server.close();
});
