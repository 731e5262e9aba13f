import { describe, expect, test } from 'vitest';
import { makeExecutableSchema } from '../../support/imitations/honest.ts';
import { entryFor } from '../../support/gateway/api-key.ts';
import { openDoor } from './door.ts';

let changes = 0;
const schema = makeExecutableSchema(
  /* GraphQL */ `
    interface Root {
      _service: Service!
      me: String
    }
    type Query implements Root {
      _service: Service!
      _entities(representations: [String!]!): [String]!
      me: String
      thing: Thing
    }
    type Service {
      sdl: String
    }
    "Has fields of these names as well, which are nobody's business."
    type Thing {
      _service: String
      _entities: String
      root: Query
    }
    type Mutation {
      change: Query
    }
  `,
  {
    Query: {
      _service: () => ({ sdl: 'sdl' }),
      _entities: () => ['one'],
      me: () => 'ada',
      thing: () => ({ _service: 'a', _entities: 'b', root: {} }),
    },
    Mutation: {
      change: () => {
        changes += 1;
        return {};
      },
    },
  },
);

const ROUTER = { 'x-api-key': 'of the router' };
const OTHER = { 'x-api-key': 'of another one' };
const apiKeys = [
  entryFor(ROUTER['x-api-key'], 'gate', 'read', 'write', 'router'),
  entryFor(OTHER['x-api-key'], 'portal', 'read', 'write'),
];
const door = openDoor(schema, { apiKeys });

const READER = { 'x-api-key': 'of a reader' };
const WRITER = { 'x-api-key': 'of a writer' };
const scoped = openDoor(schema, {
  apiKeys: [
    entryFor(READER['x-api-key'], 'reader', 'read', 'drain'),
    entryFor(WRITER['x-api-key'], 'writer', 'write'),
    entryFor(OTHER['x-api-key'], 'both', 'read', 'write'),
  ],
});
const CHANGE = 'mutation { change { me } }';
const TWO = 'query Look { me } mutation Change { change { me } }';

describe('scopes', () => {
  test.each<[string, Record<string, string>, string, string?]>([
    ['read, for queries', READER, '{ me }'],
    ['write, for mutations', WRITER, CHANGE],
    ['read, for the operation that is selected', READER, TWO, 'Look'],
    ['write, for the operation that is selected', WRITER, TWO, 'Change'],
  ])('the required scope alone is enough: %s', async (_, key, query, operationName) => {
    const { data, errors } = await scoped.ask(query, key, operationName);
    expect(errors).toBeUndefined();
    expect(data).toBeTruthy();
  });

  test.each<[string, Record<string, string>, string, 'read' | 'write', string?]>([
    ['a query', WRITER, '{ me }', 'read'],
    ['a query that is not valid, and would give names away', WRITER, '{ mee }', 'read'],
    ['a mutation', READER, CHANGE, 'write'],
    ['a mutation that is selected', READER, TWO, 'write', 'Change'],
    ['a query that is selected', WRITER, TWO, 'read', 'Look'],
  ])(
    'without the required scope the operation is refused: %s',
    async (_, key, query, scope, operationName) => {
      const before = changes;
      const { data, errors } = await scoped.ask(query, key, operationName);
      expect(data).toBeUndefined();
      expect(errors).toEqual([
        {
          message: expect.stringContaining(
            `need the scope "${scope}", which this credential does not`,
          ),
          extensions: { code: 'FORBIDDEN' },
        },
      ]);
      expect(changes).toBe(before);
      // The result that is kept for a document is not reused for another caller.
      const other = await scoped.ask(query, OTHER, operationName);
      expect(other.errors?.[0]?.extensions.code).not.toBe('FORBIDDEN');
      expect((await scoped.ask(query, key, operationName)).errors).toEqual(errors);
    },
  );
});

describe('the router fields', () => {
  test.each<[string, string, string?]>([
    ['as they are', '{ _service { sdl } }'],
    ['with representations', '{ _entities(representations: []) }'],
    ['under an alias', '{ me: _service { sdl } }'],
    ['in a fragment', '{ ...F } fragment F on Query { _service { sdl } }'],
    ['in an inline fragment', '{ ... { ... on Query { _entities(representations: []) } } }'],
    ['through an interface', '{ ... on Root { _service { sdl } } }'],
    [
      'where a directive may leave them out',
      'query ($no: Boolean = false) { _service @include(if: $no) { sdl } me }',
    ],
    ['under a way back to the root', '{ thing { root { _service { sdl } } } }'],
    ['behind a mutation', 'mutation { change { _service { sdl } } }'],
    ['in the operation that is selected', 'query A { me } query B { _service { sdl } }', 'B'],
  ])('they are answered only to routers: %s', async (_, query, operationName) => {
    const allowed = await door.ask(query, ROUTER, operationName);
    expect(allowed.errors).toBeUndefined();
    const { data, errors } = await door.ask(query, OTHER, operationName);
    expect(data).toBeUndefined();
    expect(errors).toEqual([
      {
        message: expect.stringMatching(
          /^The field _(service|entities) is for the router .* needs the scope "router"/,
        ),
        extensions: { code: 'FORBIDDEN' },
      },
    ]);
    // The result that is kept for a document is not reused for another caller.
    expect((await door.ask(query, ROUTER, operationName)).errors).toBeUndefined();
  });

  test.each<[string, string, string?]>([
    ['nothing of the kind', '{ me }'],
    ['introspection', '{ __schema { queryType { fields { name } } } __typename }'],
    ['an operation beside it', 'query A { me } query B { _service { sdl } }', 'A'],
    ['an alias alone', '{ _service: me }'],
    ['fields of that name elsewhere', '{ thing { _service _entities } }'],
  ])('an operation without router fields is answered: %s', async (_, query, operationName) => {
    expect((await door.ask(query, OTHER, operationName)).errors).toBeUndefined();
  });

  test('a router needs the scope read for them too', async () => {
    const writer = openDoor(schema, {
      apiKeys: [entryFor('writer', 'writer', 'write', 'router')],
    });
    const { errors } = await writer.ask('{ _service { sdl } }', { 'x-api-key': 'writer' });
    expect(errors).toMatchObject([{ message: expect.stringContaining('the scope "read"') }]);
  });
});
