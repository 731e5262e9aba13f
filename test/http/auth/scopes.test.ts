import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryFor } from '../../support/gateway/api-key.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import { makeExecutableSchema, personPages, PERSONS } from '../../support/imitations/honest.ts';
import { post, type Body } from '../front.ts';

const SDL = `${PERSONS}
  type Person { id: ID! }
  extend type Query { me: String thing: Thing }
  "Has fields of these names as well, which are nobody's business."
  type Thing { _service: String _entities: String root: Query }
  type Mutation { change: Query }`;
const [ROUTER, READER, WRITER, OTHER] = ['gate', 'reader', 'writer', 'both'] as const;
const auth = {
  apiKeys: [
    entryFor(ROUTER, ROUTER, 'read', 'write', 'router'),
    entryFor(READER, READER, 'read', 'drain'),
    entryFor(WRITER, WRITER, 'write', 'router'),
    entryFor(OTHER, OTHER, 'read', 'write'),
  ],
  jwt: undefined,
};

let changes = 0;
let gateway: GatewayOverFake;
beforeAll(async () => {
  const schema = makeExecutableSchema(SDL, {
    Query: {
      persons: personPages(['1']),
      me: () => 'ada',
      thing: () => ({ _service: 'a', _entities: 'b', root: {} }),
    },
    Mutation: {
      change: () => {
        changes += 1;
        return {};
      },
    },
  });
  gateway = await startGatewayOverFake(
    { schema },
    { snapshot: SDL, config: { auth, mutations: 'all' } },
  );
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function ask(query: string, key: string, operationName?: string): Promise<Body> {
  const sent = post({ query, operationName }, { 'x-api-key': key });
  return (await (await gateway.fetch('/graphql', sent)).json()) as Body;
}

const CHANGE = 'mutation { change { me } }';
const TWO = 'query Look { me } mutation Change { change { me } }';

describe('scopes', () => {
  test.each<[string, string, string, string?]>([
    ['read, for queries', READER, '{ me }'],
    ['write, for mutations', WRITER, CHANGE],
    ['read, for the operation that is selected', READER, TWO, 'Look'],
    ['write, for the operation that is selected', WRITER, TWO, 'Change'],
  ])('the required scope alone is enough: %s', async (_, key, query, operationName) => {
    const { data, errors } = await ask(query, key, operationName);
    expect(errors).toBeUndefined();
    expect(data).toBeTruthy();
  });

  test.each<[string, string, string, 'read' | 'write', string?]>([
    ['a query', WRITER, '{ me }', 'read'],
    ['a query that is not valid, and would give names away', WRITER, '{ mee }', 'read'],
    ['a mutation', READER, CHANGE, 'write'],
    ['a mutation that is selected', READER, TWO, 'write', 'Change'],
    ['a query that is selected', WRITER, TWO, 'read', 'Look'],
  ])(
    'without the required scope the operation is refused: %s',
    async (_, key, query, scope, operationName) => {
      const before = changes;
      const { data, errors } = await ask(query, key, operationName);
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
      const other = await ask(query, OTHER, operationName);
      expect(other.errors?.[0]?.extensions.code).not.toBe('FORBIDDEN');
      expect((await ask(query, key, operationName)).errors).toEqual(errors);
    },
  );
});

describe('the router fields', () => {
  test.each<[string, string, string?]>([
    ['as they are', '{ _service { sdl } }'],
    ['with representations', '{ _entities(representations: []) { __typename } }'],
    ['under an alias', '{ me: _service { sdl } }'],
    ['in a fragment', '{ ...F } fragment F on Query { _service { sdl } }'],
    [
      'in an inline fragment',
      '{ ... { ... on Query { _entities(representations: []) { __typename } } } }',
    ],
    [
      'where a directive may leave them out',
      'query ($no: Boolean = false) { _service @include(if: $no) { sdl } me }',
    ],
    ['under a way back to the root', '{ thing { root { _service { sdl } } } }'],
    ['behind a mutation', 'mutation { change { _service { sdl } } }'],
    ['in the operation that is selected', 'query A { me } query B { _service { sdl } }', 'B'],
  ])('they are answered only to routers: %s', async (_, query, operationName) => {
    await ask(query, ROUTER, operationName);
    const { data, errors } = await ask(query, OTHER, operationName);
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
    const codes = (await ask(query, ROUTER, operationName)).errors?.map(codeOf) ?? [];
    expect(codes).not.toContain('FORBIDDEN');
  });

  test.each<[string, string, string?]>([
    ['nothing of the kind', '{ me }'],
    ['introspection', '{ __schema { queryType { fields { name } } } __typename }'],
    ['an operation beside it', 'query A { me } query B { _service { sdl } }', 'A'],
    ['an alias alone', '{ _service: me }'],
    ['fields of that name elsewhere', '{ thing { _service _entities } }'],
  ])('an operation without router fields is answered: %s', async (_, query, operationName) => {
    expect((await ask(query, OTHER, operationName)).errors).toBeUndefined();
  });

  test('a router needs the scope read for them too', async () => {
    const { errors } = await ask('{ _service { sdl } }', WRITER);
    expect(errors).toMatchObject([{ message: expect.stringContaining('the scope "read"') }]);
  });
});

function codeOf({ extensions }: NonNullable<Body['errors']>[number]): string {
  return extensions.code;
}
