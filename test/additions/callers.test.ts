import { delegateToSchema } from '@graphql-tools/delegate';
import { isAsyncIterable, type ExecutionResult } from '@graphql-tools/utils';
import { parse } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { breakableStore } from '../support/gateway/stores.ts';
import { refusal } from '../service/replies.ts';
import { PEOPLE, peopleService } from './people.ts';

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

const additions: Additions = {
  typeDefs: `
    extend type Query { own: String! sneaky: Person orphan: PersonPage seenBy: String }
    extend type Person { shout: String! }
    extend type Mutation { praise: Person }
  `,
  resolvers: {
    Query: {
      own: () => 'own',
      sneaky: delegated('mutation', 'promote') as never,
      orphan: delegated('query', 'persons', false) as never,
      seenBy: (_: unknown, __: unknown, { request, user = 'nobody' }: Context) =>
        `${request.headers.get('x-api-key')} ${user}`,
    },
    Mutation: { praise: () => ({ id: '1' }) },
    Person: {
      shout: {
        selectionSet: '{ name }',
        resolve: ({ name }: Readonly<Record<string, unknown>>) => `${String(name)}!`,
      },
    },
  },
};

const KEYS = {
  apiKeys: [
    entryFor('r', 'reader', 'read'),
    entryFor('w', 'writer', 'read', 'write', 'drain'),
    entryFor('all', 'any', 'read', 'write', 'drain', 'router'),
  ],
  jwt: undefined,
};

function start(config: object = {}, plugins: Plugin[] = []) {
  return startGatewayOverService(
    { schema: peopleService() },
    { snapshot: PEOPLE, additions, config: { auth: KEYS, mutations: 'all', ...config }, plugins },
  );
}

const LONG_NAMES = Array.from({ length: 250 }, (_, at) => `${'x'.repeat(200)}${at}: name`).join(
  ' ',
);

interface Refused {
  readonly what: string;
  readonly query: string;
  readonly config?: object;
  readonly key?: string;
  readonly path?: readonly (string | number)[];
  readonly code: string;
  readonly says?: string;
}

test.each<Refused>([
  {
    what: 'a mutation that the caller may not send',
    query: '{ sneaky { name } }',
    key: 'r',
    path: ['sneaky'],
    code: 'FORBIDDEN',
    says: '"write"',
  },
  {
    what: 'a mutation that is switched off',
    query: '{ sneaky { name } }',
    config: { mutations: 'off' },
    path: ['sneaky'],
    code: 'FORBIDDEN',
    says: 'MUTATIONS',
  },
  {
    what: 'an own mutation of a caller who may only read',
    query: 'mutation { praise { name } }',
    key: 'r',
    code: 'FORBIDDEN',
  },
  {
    what: 'the fields of routers beside an own field',
    query: '{ own _entities(representations: []) { __typename } }',
    key: 'w',
    code: 'FORBIDDEN',
  },
  {
    what: 'a delegation without the context of its request',
    query: '{ orphan { items { id } } }',
    path: ['orphan'],
    code: 'UNAUTHENTICATED',
  },
  {
    what: 'more records than DRAIN_MAX_ITEMS in all drains together',
    query: '{ a: allPersons { shout } b: allPersons { id } }',
    config: { drainMaxItems: 4 },
    code: 'DRAIN_LIMIT_EXCEEDED',
  },
  {
    what: 'more pages than PAGES_PER_MINUTE',
    query: '{ a: persons { items { shout } } own }',
    config: { pagesPerMinute: 1 },
    path: ['a'],
    code: 'RATE_LIMITED',
  },
  {
    what: 'more bytes than ANSWER_BYTES',
    query: `{ own allPersons { shout ${LONG_NAMES} } }`,
    config: { answerBytes: 20_000, maxAliases: 1_000 },
    code: 'OPERATION_TOO_COMPLEX',
    says: 'ANSWER_BYTES',
  },
])(
  'resolvers cannot do for a caller: $what',
  async ({ query, config, key = 'all', ...expected }) => {
    await using gateway = await start(config);
    const init = { headers: { 'x-api-key': key } };
    // A budget is spent by the first.
    if (expected.code === 'RATE_LIMITED') await gateway.ask(query, {}, init);
    const { errors = [] } = await gateway.ask(query, {}, init);
    const { path, code, says = '' } = expected;
    expect(errors[0]).toMatchObject({ extensions: { code }, ...(path && { path }) });
    expect(errors[0]!.message).toContain(says);
  },
);

test('an operation with own fields and too many values of the service is refused with advice', async () => {
  await using gateway = await startGatewayOverService(
    { persons: 6_000 },
    {
      additions: {
        typeDefs: 'extend type Query { own: Int }',
        resolvers: { Query: { own: () => 1 } },
      },
    },
  );
  const { data, errors } = await gateway.ask(
    '{ own allPersons { id a: id b: id c: id d: id e: id f: id g: id } }',
  );
  expect(data).toEqual({ own: 1, allPersons: null });
  expect(errors).toEqual([
    {
      message: expect.stringContaining('`first` of a connection'),
      path: ['allPersons'],
      extensions: { code: 'OPERATION_TOO_COMPLEX' },
    },
  ]);
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

test.each<[string, Plugin[], string]>([
  ['without plugins', [], 'all nobody'],
  [
    'with one that extends it',
    [{ onContextBuilding: ({ extendContext }) => extendContext({ user: 'Ada' } as object) }],
    'all Ada',
  ],
  ['with one that copies it', [withContext((old) => ({ ...old, user: 'Ada' }))], 'all Ada'],
  [
    'with one that freezes it',
    [withContext((old) => Object.freeze({ ...old, user: 'Ada' }))],
    'all Ada',
  ],
])('resolvers find the request in their context, %s', async (_, plugins, seenBy) => {
  await using gateway = await start({}, plugins);
  const { data } = await gateway.ask('{ seenBy }', {}, { headers: { 'x-api-key': 'all' } });
  expect(data).toEqual({ seenBy });
});

type Payload = ExecutionResult & { readonly hasNext?: boolean };

/** What the executor of a gateway gives a program, in one result or in parts. */
async function executed(
  { gateway }: Awaited<ReturnType<typeof startGatewayOverService>>,
  query: string,
  variables?: Record<string, unknown>,
): Promise<Payload[]> {
  const result = await gateway.executor({ document: parse(query), variables });
  const payloads: Payload[] = [];
  if (isAsyncIterable(result)) for await (const payload of result) payloads.push(payload);
  else payloads.push(result as Payload);
  return JSON.parse(JSON.stringify(payloads)) as Payload[];
}

test('the executor answers any document of the served schema, and @stream in parts', async () => {
  await using world = await startGatewayOverService({ persons: 70 });
  const query = 'query ($n: Int!) { allPersons(limit: $n) { id } }';
  const [{ data }] = (await executed(world, query, { n: 60 })) as [Payload];
  expect(data!['allPersons']).toHaveLength(60);
  const parts = await executed(world, '{ allPersons @stream(initialCount: 1) { id } }');
  expect(parts[0]).toMatchObject({ data: { allPersons: expect.any(Array) }, hasNext: true });
  expect(parts.at(-1)).toMatchObject({ hasNext: false });
});

test.each([
  ['an unknown field', '{ nothing }', undefined, 'Cannot query field "nothing"'],
  ['a reserved alias', '{ _rsA: persons { items { id } } }', undefined, 'is reserved'],
  [
    'a variable of another type',
    'query ($n: Int!) { allPersons(limit: $n) { id } }',
    { n: 'x' },
    '"$n" got invalid value',
  ],
  ['two operations', 'query A { __typename } query B { __typename }', undefined, 'operationName'],
])('the executor refuses %s', async (_, query, variables, message) => {
  await using world = await startGatewayOverService();
  const results = await executed(world, query, variables);
  expect(results).toEqual([
    { errors: [expect.objectContaining({ message: expect.stringContaining(message) })] },
  ]);
});

test.each(['{ persons(first: 1) { items { id } } }', '{ allPersons @stream { id } }'])(
  'an unexpected error is masked in what the executor returns for %s',
  async (query) => {
    const ELSEWHERE = 'https://internal.example.test';
    const { store, broken } = breakableStore(ELSEWHERE);
    await using world = await startGatewayOverService({}, { store });
    world.service.answer(refusal('expired'));
    broken.is = true;
    const text = JSON.stringify(await executed(world, query));
    broken.is = false;
    expect(text).toContain('INTERNAL_SERVER_ERROR');
    expect(text).not.toContain(ELSEWHERE);
  },
);
