import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import {
  buildClientSchema,
  buildSchema,
  getIntrospectionQuery,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  introspectionFromSchema,
  lexicographicSortSchema,
  printSchema,
} from 'graphql';
import type { IntrospectionQuery } from 'graphql';
import { describe, expect, test } from 'vitest';
import { openLink, post, start } from './client.ts';
import type { GraphqlBody } from './client.ts';

/** Longer than a loaded machine takes. */
const WAIT = { interval: 2, timeout: 10_000 };

describe('/graphql', () => {
  test('the sandbox has the schema of the snapshot: types, fields, arguments and nullability', async () => {
    const sandbox = await start();
    const { access_token } = await openLink(sandbox);
    const query = JSON.stringify({ query: getIntrospectionQuery() });
    const answer = await post(sandbox, access_token, query);
    const { data } = (await answer.json()) as { data: IntrospectionQuery };
    const file = new URL('../../schema/upstream.graphql', import.meta.url);
    const snapshot = buildSchema(await readFile(file, 'utf8'));

    expect(shape(buildClientSchema(data))).toBe(shape(snapshot));
  });

  test('/graphql answers with data as JSON, and accepts variables and an operation name', async () => {
    const sandbox = await start();
    const { access_token } = await openLink(sandbox);
    const answer = await post(
      sandbox,
      access_token,
      JSON.stringify({
        query: `query A { __typename } query B($n: Int) { persons(first: $n) { pageInfo { first } } }`,
        variables: { n: 7 },
        operationName: 'B',
      }),
    );

    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json\b/);
    expect(await answer.json()).toEqual({ data: { persons: { pageInfo: { first: 7 } } } });
  });

  test('/graphql accepts the Api-User-Agent header, and does not require it', async () => {
    const sandbox = await start();
    const { access_token } = await openLink(sandbox);
    const query = JSON.stringify({ query: '{ __typename }' });

    expect((await post(sandbox, access_token, query)).status).toBe(200);
    expect(sandbox.stats.lastHeaders?.['api-user-agent']).toBeUndefined();
    await post(sandbox, access_token, query, { headers: { 'Api-User-Agent': 'mine/1.0' } });
    expect(sandbox.stats.lastHeaders?.['api-user-agent']).toBe('mine/1.0');
  });

  test.each(['{ persons {', '{ salaries }', '{ persons(first: "many") { items { id } } }'])(
    '/graphql answers 200 with errors and without data to the invalid query %s',
    async (query) => {
      const sandbox = await start();
      const { access_token } = await openLink(sandbox);
      const answer = await post(sandbox, access_token, JSON.stringify({ query }));

      expect(answer.status).toBe(200);
      expect(await answer.json()).toEqual({
        errors: [expect.objectContaining({ message: expect.any(String) })],
      });
    },
  );

  test.each([
    'not JSON',
    '',
    '[]',
    'null',
    '{}',
    '{"query":7}',
    '{"query":"{ __typename }","variables":"n"}',
    '{"query":"{ __typename }","operationName":1}',
  ])('/graphql answers 400 to the body %s and executes nothing', async (body) => {
    const sandbox = await start();
    const { access_token } = await openLink(sandbox);
    const answer = await post(sandbox, access_token, body);

    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ errors: [{ message: expect.any(String) }] });
    expect(sandbox.stats.graphql).toBe(0);
  });

  test('/graphql refuses a body that is not declared as JSON', async () => {
    const sandbox = await start();
    const { access_token } = await openLink(sandbox);
    const answer = await post(sandbox, access_token, '{"query":"{ __typename }"}', {
      headers: { 'content-type': 'text/plain' },
    });

    expect(answer.status).toBe(415);
    expect(await answer.json()).toHaveProperty('errors');
  });

  test('/graphql refuses a body above a mebibyte, and continues to serve', async () => {
    const sandbox = await start();
    const { access_token } = await openLink(sandbox);
    expect((await post(sandbox, access_token, padded(1_000_000))).status).toBe(200);
    const answer = await post(sandbox, access_token, padded(5_000_000));
    expect(answer.status).toBe(413);
    expect(await answer.json()).toHaveProperty('errors');
    expect((await post(sandbox, access_token, padded(0))).status).toBe(200);
  });

  test('the sandbox can serve another schema', async () => {
    const query = new GraphQLObjectType({
      name: 'Query',
      fields: { greeting: { type: GraphQLString, resolve: () => 'hello' } },
    });
    const sandbox = await start({ schema: new GraphQLSchema({ query }) });
    const { access_token } = await openLink(sandbox);
    const answer = await post(sandbox, access_token, '{"query":"{ greeting }"}');

    expect(await answer.json()).toEqual({ data: { greeting: 'hello' } });
  });

  test('what a resolver throws is returned as a GraphQL error with its path', async () => {
    const query = new GraphQLObjectType({
      name: 'Query',
      fields: { greeting: { type: GraphQLString, resolve: fail } },
    });
    const sandbox = await start({ schema: new GraphQLSchema({ query }) });
    const { access_token } = await openLink(sandbox);
    const answer = await post(sandbox, access_token, '{"query":"{ greeting }"}');
    const body = (await answer.json()) as GraphqlBody<{ greeting: null }>;

    expect(body.data).toEqual({ greeting: null });
    expect(body.errors?.[0]).toMatchObject({ message: 'out of order', path: ['greeting'] });
  });

  test('/graphql waits for the latency before it answers', async () => {
    const sandbox = await start({ latency: 30 });
    const { access_token } = await openLink(sandbox);
    const begin = performance.now();
    await post(sandbox, access_token, '{"query":"{ __typename }"}');

    // Timers count whole milliseconds and may be one early.
    expect(performance.now() - begin).toBeGreaterThanOrEqual(29);
  });

  test('a client that leaves during the latency is forgotten', async () => {
    const sandbox = await start({ latency: 3_600_000 });
    const { access_token } = await openLink(sandbox);
    const leaving = new AbortController();
    const answer = post(sandbox, access_token, '{"query":"{ __typename }"}', {
      signal: leaving.signal,
    });
    await expect.poll(() => sandbox.stats.inFlight, WAIT).toBe(1);
    leaving.abort();

    await expect(answer).rejects.toThrow('aborted');
    await expect.poll(() => sandbox.stats.inFlight, WAIT).toBe(0);
    expect(sandbox.stats.graphql).toBe(0);
    expect((await fetch(`${sandbox.url}/auth_check`)).status).toBe(401);
  });

  test('a client that leaves in the middle of its body is forgotten', async () => {
    const sandbox = await start();
    const { access_token } = await openLink(sandbox);
    const socket = connect(Number(new URL(sandbox.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write(
      `POST /graphql HTTP/1.1\r\nHost: sandbox\r\nContent-Length: 99\r\nContent-Type: application/json\r\nAuthorization: Bearer ${access_token}\r\n\r\n{"query"`,
    );
    await expect.poll(() => sandbox.stats.inFlight, WAIT).toBe(1);
    socket.destroy();

    await expect.poll(() => sandbox.stats.inFlight, WAIT).toBe(0);
    expect((await post(sandbox, access_token, '{"query":"{ __typename }"}')).status).toBe(200);
  });

  test('requests in flight are counted, and how many there were at most', async () => {
    const gate = Promise.withResolvers<string>();
    const query = new GraphQLObjectType({
      name: 'Query',
      fields: { late: { type: GraphQLString, resolve: () => gate.promise } },
    });
    const sandbox = await start({ schema: new GraphQLSchema({ query }) });
    const { access_token } = await openLink(sandbox);
    const answers = [1, 2, 3].map(() => post(sandbox, access_token, '{"query":"{ late }"}'));
    await expect.poll(() => sandbox.stats.inFlight, WAIT).toBe(3);
    gate.resolve('now');
    await Promise.all(answers);

    expect(sandbox.stats).toMatchObject({ inFlight: 0, maxInFlight: 3, graphql: 3 });
  });
});

/** The schema without its descriptions. */
function shape(schema: GraphQLSchema): string {
  const silent = buildClientSchema(introspectionFromSchema(schema, { descriptions: false }));
  return printSchema(lexicographicSortSchema(silent));
}

function padded(size: number): string {
  return JSON.stringify({ query: '{ __typename }', padding: 'x'.repeat(size) });
}

function fail(): never {
  throw new Error('out of order');
}
