import { setTimeout as delay } from 'node:timers/promises';
import { isAsyncIterable } from '@graphql-tools/utils';
import { parse } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import type { Config } from '../../src/config.ts';
import { makeExecutableSchema, range } from '../service/lists.ts';
import { refusal } from '../service/replies.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { breakableStore } from '../support/gateway/stores.ts';
import { delegated, startPeople } from './people.ts';

interface Context {
  readonly request: Request;
  readonly user?: string;
}

const promoted = delegated('promote', { operation: 'mutation', args: { id: '1' } });

const DELEGATING: Additions = {
  typeDefs: 'extend type Query { sneaky: Person orphan: PersonPage seenBy: String }',
  resolvers: {
    Query: {
      // Later, when other operations have begun.
      sneaky: (async (...args: Parameters<typeof promoted>) => {
        await delay(0);
        return promoted(...args);
      }) as never,
      orphan: delegated('persons', { context: {} }) as never,
      seenBy: (_: unknown, __: unknown, { request, user = 'nobody' }: Context) =>
        `${request.headers.get('x-api-key')} ${user}`,
    },
  },
};

const AUTH = {
  apiKeys: [
    entryFor('r', 'reader', 'read'),
    entryFor('w', 'writer', 'read', 'write', 'drain'),
    entryFor('all', 'any', 'read', 'write', 'drain', 'router'),
  ],
  jwt: undefined,
};

const start = (config: Partial<Config> = {}, plugins: Plugin[] = []) =>
  startPeople(DELEGATING, { config: { auth: AUTH, ...config }, plugins });
const as = (key: string) => ({ headers: { 'x-api-key': key } });

const aliased = (name: string, length: number) =>
  range(250)
    .map((at) => `${'x'.repeat(length)}${at}: ${name}`)
    .join(' ');

const OWN_AND_ENTITIES = '{ own _entities(representations: []) { __typename } }';
const REFERENCES = `_entities(representations: [${'{ __typename: "Note", id: "n" } '.repeat(5_001)}]) { __typename }`;
const TWO_LISTS_OF_REFERENCES = `{ own a: ${REFERENCES} b: ${REFERENCES} }`;
const TWO_DRAINS = '{ a: allPersons { shout } b: allPersons { id } }';
const TWO_PAGES = '{ a: persons { items { shout } } b: persons(first: 2) { items { shout } } }';
const SETTINGS = {
  off: { mutations: 'off' },
  drained: { drainMaxItems: 4 },
  paged: { pagesPerMinute: 1 },
  small: { answerBytes: 20_000, maxAliases: 1_000 },
  large: { maxTokens: 100_000, maxBodyBytes: 1_000_000 },
} satisfies Record<string, Partial<Config>>;

test.each<[string, string, string, code: string, says: string, config?: Partial<Config>]>([
  ['a mutation that the caller may not send', '{ sneaky { name } }', 'r', 'FORBIDDEN', '"write"'],
  ['a mutation that is off', '{ sneaky { name } }', 'all', 'FORBIDDEN', 'MUTATIONS', SETTINGS.off],
  ['an own mutation', 'mutation { praise(id: "1") { name } }', 'r', 'FORBIDDEN', '"write"'],
  ['the fields of routers beside an own field', OWN_AND_ENTITIES, 'w', 'FORBIDDEN', '"router"'],
  ['a delegation without a context', '{ orphan { items { id } } }', 'all', 'UNAUTHENTICATED', ''],
  ['DRAIN_MAX_ITEMS', TWO_DRAINS, 'all', 'DRAIN_LIMIT_EXCEEDED', '', SETTINGS.drained],
  ['PAGES_PER_MINUTE', TWO_PAGES, 'all', 'RATE_LIMITED', '', SETTINGS.paged],
  [
    '10,000 references to records',
    TWO_LISTS_OF_REFERENCES,
    'all',
    'OPERATION_TOO_COMPLEX',
    '10000 records',
    SETTINGS.large,
  ],
  [
    'ANSWER_BYTES',
    `{ own allPersons { shout ${aliased('name', 200)} } }`,
    'all',
    'OPERATION_TOO_COMPLEX',
    'ANSWER_BYTES',
    SETTINGS.small,
  ],
])('resolvers cannot go beyond what a caller may do: %s', async (...row) => {
  const [, query, key, code, says, config] = row;
  await using gateway = await start(config);
  const { errors = [] } = await gateway.ask(query, {}, as(key));
  expect(errors[0]).toMatchObject({ extensions: { code } });
  expect(errors[0]!.message).toContain(says);
  const [name] = /\b(sneaky|orphan)\b/.exec(query) ?? [];
  if (name) expect(errors[0]!.path).toEqual([name]);
});

test('what an operation delegates is held no longer than the operation', async () => {
  await using gateway = await start({ answerBytes: 250_000, maxAliases: 1_000 });
  for (const at of range(4)) {
    const query = `{ allPersons { shout ${aliased('name', 80)} } }`;
    expect([at, (await gateway.ask(query, {}, as('all'))).errors]).toEqual([at, undefined]);
  }
});

/** Executes operations with another context. */
function withContext(change: (context: object) => object): Plugin {
  return {
    onExecute: ({ executeFn, setExecuteFn }) =>
      setExecuteFn((args) => {
        const contextValue = change(args.contextValue as object);
        return executeFn({ ...args, contextValue }) as unknown;
      }),
  };
}

const extending: Plugin = {
  onContextBuilding: ({ extendContext }) => extendContext({ user: 'Ada' } as object),
};

test.each<[string, Plugin[], string]>([
  ['without plugins', [], 'all nobody'],
  ['with one that extends it', [extending], 'all Ada'],
])('resolvers find the request in their context, %s', async (_, plugins, seenBy) => {
  await using gateway = await start({}, plugins);
  const { data } = await gateway.ask('{ seenBy }', {}, as('all'));
  expect(data).toEqual({ seenBy });
});

test('operations at the same time, for which a plugin has one context, are each delegated for their own caller', async () => {
  let shared: object | undefined;
  await using gateway = await start({}, [withContext((context) => (shared ??= context))]);
  const [writing, reading] = await Promise.all(
    ['w', 'r'].map((key) => gateway.ask('{ sneaky { n: name shout } }', {}, as(key))),
  );
  expect(writing).toEqual({ data: { sneaky: { n: 'Name 1', shout: 'Name 1!' } } });
  expect(reading!.errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
});

/** A service with 20 pages, and an own field. */
let many: GatewayOverService;
beforeAll(async () => {
  const typeDefs = 'extend type Query { own: Int }';
  const bulk = makeExecutableSchema('type Query { bulk: [Int] }', {
    Query: { bulk: () => Array<number>(60_000).fill(1) },
  });
  const subschemas = [{ schema: bulk }];
  const additions = { typeDefs, resolvers: { Query: { own: () => 1 } }, subschemas };
  const config = { maxAliases: 2_000, maxTokens: 10_000 };
  many = await startGatewayOverService({ persons: 1_000 }, { additions, config });
});
afterAll(() => many[Symbol.asyncDispose]());

const FIVE_PAGES = range(5).map((at) => `p${at}: persons { items { ${aliased('id', 1)} } }`);

test.each([
  ['values in several answers of the service', FIVE_PAGES.join(' '), 'added to this gateway'],
  ['values of a second service', 'bulk', 'added to this gateway'],
  ['values, before all are read', `allPersons { ${aliased('id', 1)} }`, '`first` of a connection'],
])(
  'an operation with own fields and too many %s is refused with advice',
  async (_, query, advice) => {
    const before = many.service.received.length;
    const { errors = [] } = await many.ask(`{ own ${query} }`);
    expect(errors[0]).toMatchObject({ extensions: { code: 'OPERATION_TOO_COMPLEX' } });
    expect(errors[0]!.message).toContain(advice);
    expect(many.service.received.length - before).toBeLessThan(10);
  },
);

test('the values of a drain of several pages are counted once', async () => {
  const { data, errors } = await many.ask<{ allPersons: unknown[] }>(
    '{ own allPersons { a: id b: id c: id d: id } }',
  );
  expect([data.allPersons.length, errors]).toEqual([1_000, undefined]);
});

test.each(['{ persons(first: 1) { items { id } } }', '{ allPersons @stream { id } }'])(
  'an unexpected error is masked in what the executor returns for %s',
  async (query) => {
    const { store, broken } = breakableStore('internal.example.test');
    await using world = await startGatewayOverService({}, { store });
    world.service.answer(refusal('expired'));
    broken.is = true;
    const result = await world.gateway.executor({ document: parse(query) });
    const parts: unknown[] = [result];
    if (isAsyncIterable(result)) for await (const part of result) parts.push(part);
    broken.is = false;
    const text = JSON.stringify(parts);
    expect(text).toContain('INTERNAL_SERVER_ERROR');
    expect(text).not.toContain('internal.example.test');
  },
);
