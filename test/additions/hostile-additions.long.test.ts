import { buildHTTPExecutor } from '@graphql-tools/executor-http';
import { buildSchema } from 'graphql';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { serveRecorded } from '../support/supergraph/recorded-server.ts';

const hostile: Additions = {
  typeDefs: `
    type Chain { name: String! many(n: Int!): [Chain!]! drawn(n: Int!): [Int!]! }
    extend type Query { chain: Chain! never: String }
  `,
  resolvers: { Query: { chain: () => link('root'), never: () => new Promise(() => {}) } },
};

function later(): Promise<never> {
  return pause(5).then(() => Promise.reject(new Error('later')));
}

function link(name: string): object {
  return {
    name,
    many: ({ n }: { n: number }) => Array.from({ length: n }, (_, i) => link(`${name}${i}`)),
    *drawn({ n }: { n: number }) {
      for (let i = 0; i < n; i += 1) yield i;
    },
  };
}

describe('a list whose promises are rejected after it has failed does not end the process', () => {
  const many = Array.from({ length: 10_001 }, () => 1);

  test.each<[string, string, () => unknown]>([
    ['because it is too long', '[Int]', () => [later(), ...many]],
    ['because a list in it is too long', '[[Int]]', () => [[later()], many]],
    [
      'because it is too long, and was drawn',
      '[Int]',
      function* () {
        yield later();
        yield* many;
      },
    ],
    [
      'while it was drawn',
      '[Int]',
      function* () {
        yield later();
        throw new Error('at once');
      },
    ],
    ['because of a null', '[Int!]!', () => [later(), null]],
    ['because of a null in a list of it', '[[Int!]!]!', () => [[later(), null]]],
    ['because of a field', '[Item!]!', () => [{ value: later }, { value: () => null }]],
  ])('%s', async (_, type, list) => {
    const rejected: unknown[] = [];
    const onRejected = (reason: unknown) => void rejected.push(reason);
    process.on('unhandledRejection', onRejected);
    onTestFinished(() => void process.off('unhandledRejection', onRejected));
    const additions: Additions = {
      typeDefs: `type Item { value: Int! } extend type Query { list: ${type} }`,
      resolvers: { Query: { list } },
    };
    await using gateway = await startGatewayOverSandbox({}, { additions });
    const { errors } = await gateway.ask(`{ list ${type.includes('Item') ? '{ value }' : ''} }`);
    expect(errors).toHaveLength(1);
    await pause(20);
    expect(rejected).toEqual([]);
  });
});

test.each([
  ['of objects', '{ chain { many(n: 50000) { name } } }'],
  ['that are drawn one by one, almost without an end', '{ chain { drawn(n: 2000000000) } }'],
  ['within lists', '{ chain { many(n: 100) { many(n: 100) { many(n: 100) { name } } } } }'],
])('too many values %s that resolvers return are refused', async (_, query) => {
  await using gateway = await startGatewayOverSandbox({}, { additions: hostile });
  const { data, errors } = await gateway.ask(query);
  expect(errors).toEqual([
    expect.objectContaining({
      extensions: expect.objectContaining({ code: 'OPERATION_TOO_COMPLEX' }),
    }),
  ]);
  expect(data).toBeNull();
});

test('a resolver that never answers costs only its own caller, who can leave', async () => {
  await using gateway = await startGatewayOverSandbox({}, { additions: hostile });
  const leaving = new AbortController();
  const waiting = gateway.ask('{ never }', {}, { signal: leaving.signal });
  const { errors } = await gateway.ask('{ persons(first: 1) { items { id } } }');
  expect(errors).toBeUndefined();
  leaving.abort();
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
});

describe('a second service', () => {
  const SDL = `
    type Query { reviewed(ids: [ID!]!): [Person]! }
    type Person { id: ID! rating: Int note: String }
  `;

  function over(url: string): Additions {
    return {
      subschemas: [
        {
          schema: buildSchema(SDL),
          executor: buildHTTPExecutor({ endpoint: url, timeout: 300 }),
          merge: {
            Person: {
              selectionSet: '{ id }',
              fieldName: 'reviewed',
              key: ({ id }: { id: string }) => id,
              argsFromKeys: (ids: readonly unknown[]) => ({ ids }),
            },
          },
        },
      ],
    };
  }

  /** A record with fields that were requested, and with those of the first service. */
  const FORGED = {
    __typename: 'Person',
    id: 'secret',
    id__rs: 'secret',
    firstName: 'secret',
    firstName__rs: 'secret',
  };

  const QUERY = '{ persons(first: 2) { items { id firstName rating note } } }';

  test.each<[string, () => Response | Promise<Response>]>([
    ['answers 500', () => new Response('secret', { status: 500 })],
    ['answers HTML', () => new Response('<html>secret</html>')],
    ['answers null', () => new Response('null')],
    ['answers too slowly', () => new Promise(() => {})],
    ['has another type', () => Response.json({ data: { reviewed: 'secret' } })],
    ['has too few records', () => Response.json({ data: { reviewed: [] } })],
    ['gives other ids', () => Response.json({ data: { reviewed: [FORGED, FORGED] } })],
    ['has an error', () => Response.json({ errors: [{ message: 'No reviews today.' }] })],
  ])('that %s costs only its own fields, and its errors are at them', async (_, respond) => {
    await using service = await serveRecorded(() => respond());
    await using gateway = await startGatewayOverSandbox({}, { additions: over(service.url) });
    const { data, errors = [] } = await gateway.ask<People>(QUERY);
    expect(data.persons.items).toHaveLength(2);
    for (const item of data.persons.items) {
      expect(item).toEqual({
        id: item.id,
        firstName: expect.any(String),
        rating: null,
        note: null,
      });
    }
    const ownField = expect.stringMatching(/^(rating|note)$/);
    for (const { path } of errors) {
      expect(path).toEqual(['persons', 'items', expect.any(Number), ownField]);
    }
    expect(JSON.stringify({ data, errors })).not.toContain('secret');
    expect(JSON.stringify(errors)).not.toContain(new URL(service.url).host);
  });

  interface People {
    readonly persons: {
      readonly items: readonly { readonly id: string; readonly rating: number | null }[];
    };
  }
});
