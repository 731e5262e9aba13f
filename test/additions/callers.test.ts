import { delegateToSchema } from '@graphql-tools/delegate';
import { isAsyncIterable, type ExecutionResult } from '@graphql-tools/utils';
import { parse } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import type { Config } from '../../src/config.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { breakableStore } from '../support/gateway/stores.ts';
import { range } from '../service/lists.ts';
import { refusal } from '../service/replies.ts';
import { startPeople } from './people.ts';

type Stitched = { schema: { extensions: { stitchingInfo: { subschemaMap: Map<object, never> } } } };

/** Delegates to the served schema. */
const delegated =
  (operation: string, fieldName: string, hasContext = true) =>
  (_: unknown, __: unknown, context: object, info: Stitched) => {
    const [schema] = info.schema.extensions.stitchingInfo.subschemaMap.keys();
    const args = operation === 'mutation' ? { id: '1' } : {};
    const asked = { schema, operation, fieldName, args, context: hasContext ? context : {}, info };
    return delegateToSchema(asked as never) as Promise<unknown>;
  };

interface Context {
  readonly request: Request;
  readonly user?: string;
}

const DELEGATING: Additions = {
  typeDefs: 'extend type Query { sneaky: Person orphan: PersonPage seenBy: String }',
  resolvers: {
    Query: {
      sneaky: delegated('mutation', 'promote') as never,
      orphan: delegated('query', 'persons', false) as never,
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

const aliased = (name: string, length: number) =>
  range(250)
    .map((at) => `${'x'.repeat(length)}${at}: ${name}`)
    .join(' ');

interface Refused {
  readonly query: string;
  readonly config?: Partial<Config>;
  readonly key?: string;
  readonly path?: readonly string[];
  readonly code: string;
  readonly says?: string;
}

const REFUSED: Readonly<Record<string, Refused>> = {
  'a mutation that the caller may not send': {
    query: '{ sneaky { name } }',
    key: 'r',
    path: ['sneaky'],
    code: 'FORBIDDEN',
    says: '"write"',
  },
  'a mutation that is switched off': {
    query: '{ sneaky { name } }',
    config: { mutations: 'off' },
    path: ['sneaky'],
    code: 'FORBIDDEN',
    says: 'MUTATIONS',
  },
  'an own mutation of a caller who may only read': {
    query: 'mutation { praise(id: "1") { name } }',
    key: 'r',
    code: 'FORBIDDEN',
  },
  'the fields of routers beside an own field': {
    query: '{ own _entities(representations: []) { __typename } }',
    key: 'w',
    code: 'FORBIDDEN',
  },
  'a delegation without the context of its request': {
    query: '{ orphan { items { id } } }',
    path: ['orphan'],
    code: 'UNAUTHENTICATED',
  },
  'more records than DRAIN_MAX_ITEMS in all drains together': {
    query: '{ a: allPersons { shout } b: allPersons { id } }',
    config: { drainMaxItems: 4 },
    code: 'DRAIN_LIMIT_EXCEEDED',
  },
  'more pages than PAGES_PER_MINUTE': {
    query: '{ a: persons { items { shout } } b: persons(first: 2) { items { shout } } }',
    config: { pagesPerMinute: 1 },
    code: 'RATE_LIMITED',
  },
  'more bytes than ANSWER_BYTES': {
    query: `{ own allPersons { shout ${aliased('name', 200)} } }`,
    config: { answerBytes: 20_000, maxAliases: 1_000 },
    code: 'OPERATION_TOO_COMPLEX',
    says: 'ANSWER_BYTES',
  },
};

test.each(Object.entries(REFUSED))(
  'resolvers cannot do for a caller: %s',
  async (_, { query, config, key = 'all', path, code, says = '' }) => {
    await using gateway = await start(config);
    const { errors = [] } = await gateway.ask(query, {}, { headers: { 'x-api-key': key } });
    expect(errors[0]).toMatchObject({
      message: expect.stringContaining(says),
      extensions: { code },
      ...(path && { path }),
    });
  },
);

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
const copying = withContext((old) => ({ ...old, user: 'Ada' }));
const freezing = withContext((old) => Object.freeze({ ...old, user: 'Ada' }));

test.each<[string, Plugin[], string]>([
  ['without plugins', [], 'all nobody'],
  ['with one that extends it', [extending], 'all Ada'],
  ['with one that copies it', [copying], 'all Ada'],
  ['with one that freezes it', [freezing], 'all Ada'],
])('resolvers find the request in their context, %s', async (_, plugins, seenBy) => {
  await using gateway = await start({}, plugins);
  const { data } = await gateway.ask('{ seenBy }', {}, { headers: { 'x-api-key': 'all' } });
  expect(data).toEqual({ seenBy });
});

/** A service with 20 pages, and an own field. */
let many: GatewayOverService;
beforeAll(async () => {
  const typeDefs = 'extend type Query { own: Int }';
  const additions = { typeDefs, resolvers: { Query: { own: () => 1 } } };
  const config = { maxAliases: 2_000, maxTokens: 10_000 };
  many = await startGatewayOverService({ persons: 1_000 }, { additions, config });
});
afterAll(() => many[Symbol.asyncDispose]());

test.each([
  [
    'values in several answers of the service',
    range(5)
      .map((at) => `p${at}: persons { items { ${aliased('id', 1)} } }`)
      .join(' '),
  ],
  ['bytes in one answer of the service', `allPersons(limit: 100) { ${aliased('id', 200)} }`],
])('an operation with own fields and too many %s is refused', async (_, query) => {
  const { errors = [] } = await many.ask(`{ own ${query} }`);
  expect(errors[0]).toMatchObject({ extensions: { code: 'OPERATION_TOO_COMPLEX' } });
  expect(errors[0]!.message).toContain('added to this gateway');
});

test('an operation with own fields and too many values of the service is refused with advice, before all are read', async () => {
  const before = many.service.received.length;
  const { data, errors } = await many.ask(`{ own allPersons { ${aliased('id', 1)} } }`);
  expect(data).toEqual({ own: 1, allPersons: null });
  const message = expect.stringContaining('`first` of a connection');
  const extensions = { code: 'OPERATION_TOO_COMPLEX' };
  expect(errors).toEqual([{ message, path: ['allPersons'], extensions }]);
  expect(many.service.received.length - before).toBeLessThan(10);
});

type Payload = ExecutionResult & { readonly hasNext?: boolean };

/** What the executor of a gateway gives a program, in one result or in parts. */
async function executed(
  { gateway }: GatewayOverService,
  query: string,
  variables?: Record<string, unknown>,
): Promise<Payload[]> {
  const result = await gateway.executor({ document: parse(query), variables });
  const payloads: Payload[] = [];
  if (isAsyncIterable(result)) for await (const payload of result) payloads.push(payload);
  else payloads.push(result as Payload);
  return JSON.parse(JSON.stringify(payloads)) as Payload[];
}

const LIMITED = 'query ($n: Int!) { allPersons(limit: $n) { id } }';

test('the executor answers any document of the served schema, and @stream in parts', async () => {
  const [{ data }] = (await executed(many, LIMITED, { n: 60 })) as [Payload];
  expect(data!['allPersons']).toHaveLength(60);
  const parts = await executed(many, '{ allPersons @stream(initialCount: 1) { id } }');
  expect(parts[0]).toMatchObject({ data: { allPersons: expect.any(Array) }, hasNext: true });
  expect(parts.at(-1)).toMatchObject({ hasNext: false });
});

test.each([
  ['an unknown field', '{ nothing }', 'Cannot query field "nothing"'],
  ['a reserved alias', '{ _rsA: persons { items { id } } }', 'is reserved'],
  ['a variable of another type', LIMITED, '"$n" got invalid value'],
  ['two operations', 'query A { __typename } query B { __typename }', 'operationName'],
])('the executor refuses %s', async (_, query, says) => {
  const message = expect.stringContaining(says);
  expect(await executed(many, query, { n: 'x' })).toEqual([
    { errors: [expect.objectContaining({ message })] },
  ]);
});

test.each(['{ persons(first: 1) { items { id } } }', '{ allPersons @stream { id } }'])(
  'an unexpected error is masked in what the executor returns for %s',
  async (query) => {
    const { store, broken } = breakableStore('internal.example.test');
    await using world = await startGatewayOverService({}, { store });
    world.service.answer(refusal('expired'));
    broken.is = true;
    const text = JSON.stringify(await executed(world, query));
    broken.is = false;
    expect(text).toContain('INTERNAL_SERVER_ERROR');
    expect(text).not.toContain('internal.example.test');
  },
);
