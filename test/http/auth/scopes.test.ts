import { afterAll, beforeAll, expect, test } from 'vitest';
import { entryFor } from '../../support/gateway/api-key.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import { makeExecutableSchema, personPages, PERSONS } from '../../support/imitations/honest.ts';
import { codesOf } from '../../support/gateway/codes.ts';

/** A service whose objects lead back to the root, as some payloads of mutations do. */
const SDL = `${PERSONS}
  type Person { id: ID! }
  extend type Query { me: String thing: Thing }
  "Has fields of these names as well, which are nobody's business."
  type Thing { _service: String _entities: String root: Query }
  type Mutation { change: Query }`;
const auth = {
  apiKeys: [
    entryFor('gate', 'gate', 'read', 'write', 'router'),
    entryFor('writer', 'writer', 'write', 'router'),
    entryFor('both', 'both', 'read', 'write'),
  ],
  jwt: undefined,
};

let gateway: GatewayOverFake;
beforeAll(async () => {
  const schema = makeExecutableSchema(SDL, {
    Query: {
      persons: personPages(['1']),
      me: () => 'ada',
      thing: () => ({ _service: 'a', _entities: 'b', root: {} }),
    },
    Mutation: { change: () => ({}) },
  });
  const config = { auth, mutations: 'all' as const, maxAliases: 1 };
  gateway = await startGatewayOverFake({ schema }, { snapshot: SDL, config });
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function codes(query: string, key: string): Promise<unknown[]> {
  return codesOf(await gateway.ask(query, {}, { headers: { 'x-api-key': key } }));
}

test.each([
  ['at the root', '{ _service { sdl } }'],
  ['under a way back to the root', '{ thing { root { _service { sdl } } } }'],
  ['behind a mutation', 'mutation { change { _service { sdl } } }'],
])('the fields of routers need the scope router, %s', async (_, query) => {
  // What is kept of a document for one caller is not reused for another.
  for (let turn = 0; turn < 2; turn += 1) {
    expect(await codes(query, 'gate')).not.toContain('FORBIDDEN');
    expect(await codes(query, 'both')).toEqual(['FORBIDDEN']);
  }
});

test('fields of the service with the names of router fields are answered to every caller', async () => {
  expect(await codes('{ thing { _service _entities } }', 'both')).toEqual([]);
});

test('a router needs the scope read for its fields too', async () => {
  expect(await codes('{ _service { sdl } }', 'writer')).toEqual(['FORBIDDEN']);
});

test('only a router may use more aliases, whoever sent the operation first', async () => {
  for (const [query, callers] of [
    ['{ a: me b: me }', ['gate', 'both']],
    ['{ c: me d: me }', ['both', 'gate']],
  ] as const) {
    for (const caller of [...callers, ...callers]) {
      const expected = caller === 'gate' ? [] : ['OPERATION_TOO_COMPLEX'];
      expect(await codes(query, caller)).toEqual(expected);
    }
  }
});
