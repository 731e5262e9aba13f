import {
  GraphQLError,
  parse,
  visit,
  type ASTVisitor,
  type ExecutionResult,
  type OperationDefinitionNode,
  type ValidationContext,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  startGatewayOverSandbox,
  type TestGateway,
  type TestGatewayOptions,
} from '../support/gateway/gateway.ts';
import { ask } from '../support/clients/multipart.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { as, keys, peopleSdl, peopleService, scopes, SECRET } from '../schema/people.ts';

type Config = TestGatewayOptions['config'];

async function startWith(plugin: Plugin, config: Config = {}): Promise<TestGateway> {
  const gateway = await startGatewayOverSandbox({}, { config: config ?? {}, plugins: [plugin] });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

const PAGE = '{ persons(first: 1) { items { id } } }';

const noFirstNames = (context: ValidationContext): ASTVisitor => ({
  Field(node) {
    if (node.name.value !== 'firstName') return;
    context.reportError(new GraphQLError('No first names here.', { nodes: node }));
  },
});

describe('rules of a plugin', () => {
  test('refuse an operation that GraphQL allows, each time', async () => {
    const gateway = await startWith({
      onValidate: ({ addValidationRule }) => addValidationRule(noFirstNames),
    });
    const query = '{ persons(first: 1) { items { id firstName } } }';
    for (let i = 0; i < 3; i += 1) {
      const { data, errors } = await gateway.ask(query);
      expect(data).toBeUndefined();
      expect(errors).toEqual([
        {
          message: 'No first names here.',
          locations: [{ line: 1, column: 34 }],
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ]);
    }
    expect((await gateway.ask(PAGE)).errors).toBeUndefined();
  });

  test('cannot make an operation valid that is not', async () => {
    const gateway = await startWith({ onValidate: ({ setResult }) => setResult([]) });
    const { data, errors } = await gateway.ask('{ nope }');
    expect(data).toBeUndefined();
    expect(errors).toHaveLength(1);
  });
});

const WAYS: readonly (readonly [string, (text: string) => Plugin])[] = [
  [
    'onParams',
    (query) => ({ onParams: ({ params, setParams }) => setParams({ ...params, query }) }),
  ],
  ['onParse', (query) => ({ onParse: ({ setParsedDocument }) => setParsedDocument(parse(query)) })],
  [
    'executeFn',
    (query) => ({
      onExecute({ executeFn, setExecuteFn }) {
        setExecuteFn((args) => executeFn({ ...args, document: parse(query) }) as unknown);
      },
    }),
  ],
];

describe.each(WAYS)('an operation that a plugin replaces in %s', (_, replacedBy) => {
  const request = async (query: string, config?: Config) => {
    const gateway = await startWith(replacedBy(query), config);
    return gateway.ask<unknown>('{ __typename }');
  };

  test('is answered', async () => {
    const { data, errors } = await request('{ persons(first: 2) { items { name: firstName } } }');
    expect(errors).toBeUndefined();
    expect(data).toEqual({ persons: { items: [{ name: 'Emma' }, { name: expect.any(String) }] } });
  });

  test.each([
    ['has an unknown field', '{ nope }', {}, 'BAD_USER_INPUT'],
    [
      'has too many aliases',
      '{ a: __typename b: __typename c: __typename }',
      { maxAliases: 2 },
      'OPERATION_TOO_COMPLEX',
    ],
    [
      'introspects where nobody may',
      '{ __schema { queryType { name } } }',
      { introspection: false },
      'BAD_USER_INPUT',
    ],
    [
      'asks for the SDL where nobody may',
      '{ _service { sdl } }',
      { introspection: false },
      'FORBIDDEN',
    ],
  ])('is refused if it %s', async (__, query, config, code) => {
    const { data, errors } = await request(query, config);
    expect(data).toBeUndefined();
    expect(errors![0]!.extensions?.['code']).toBe(code);
  });
});

test('a plugin cannot make a mutation of a GET', async () => {
  const gateway = await startWith({
    onParams: ({ setParams }) => setParams({ query: 'mutation { rename }' }),
  });
  const headers = { 'apollo-require-preflight': 'yes' };
  const response = await gateway.fetch('/graphql?query={__typename}', { headers });
  expect(response.status).toBe(405);
});

const changed = (variableValues: unknown): Plugin => ({
  onExecute({ executeFn, setExecuteFn }) {
    setExecuteFn((args) => executeFn({ ...args, variableValues }) as unknown);
  },
});

test.each([
  [{ count: 3 }, 3],
  [{ count: 'x' }, undefined],
  [{}, undefined],
  [{ count: null }, undefined],
])('variables that a plugin changes to %j are checked, and count', async (variables, count) => {
  const gateway = await startWith(changed(variables));
  const query = 'query ($count: Int!) { persons(first: $count) { items { id } } }';
  const { data, errors } = await gateway.ask<Persons | undefined>(query, { count: 1 });
  expect(data?.persons.items.length).toBe(count);
  if (count === undefined) {
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'BAD_USER_INPUT' });
  }
});

interface Persons {
  readonly persons: { readonly items: unknown[] };
}

test('a field that a plugin adds is read, and the plugin can remove it from the answer', async () => {
  const withTypes: Plugin = {
    onExecute({ executeFn, setExecuteFn }) {
      setExecuteFn((args) => {
        const [added] = (parse('{ added: __typename }').definitions[0] as OperationDefinitionNode)
          .selectionSet.selections;
        const document = visit(args.document, {
          SelectionSet: (node) => ({ ...node, selections: [...node.selections, added!] }),
        });
        return executeFn({ ...args, document }) as unknown;
      });
      return {
        onExecuteDone({ result, setResult }) {
          const text = JSON.stringify(result);
          expect(text).toContain('"added":"Person"');
          setResult(JSON.parse(text.replaceAll(/,"added":"\w+"/g, '')));
        },
      };
    },
  };
  const gateway = await startWith(withTypes);
  const plain = await startWith({});
  for (const query of [
    PAGE,
    '{ allPersons(limit: 60) { id } }',
    '{ personsConnection(first: 2) { nodes { id } } }',
  ]) {
    expect(await gateway.ask(query)).toEqual(await plain.ask(query));
  }
});

test.each<[string, Plugin, RegExp]>([
  ['replaces the schema', { onPluginInit: ({ setSchema }) => setSchema({}) }, /plugin.*schema/i],
  [
    'replaces the schema that it sees',
    { onSchemaChange: ({ replaceSchema }) => replaceSchema({}) },
    /plugin.*schema/i,
  ],
  ['throws when it is added', { onPluginInit: boom }, /db\.internal/],
  ['throws when it sees Yoga', { onYogaInit: boom }, /db\.internal/],
  ['throws when it sees the schema', { onSchemaChange: boom }, /db\.internal/],
])('a plugin that %s is refused at the start', async (_, plugin, reason) => {
  await expect(startGatewayOverSandbox({}, { plugins: [plugin] })).rejects.toThrow(reason);
});

function boom(): never {
  throw new Error('the disk of db.internal failed');
}

test('a plugin that replaces the schema for a request gets that request refused, and every later one', async () => {
  const gateway = await startWith({
    onEnveloped: ({ context, setSchema }) => {
      const { request } = context as { request?: Request };
      if (request?.headers.has('x-replace')) setSchema({});
    },
  });
  expect((await gateway.ask(PAGE)).errors).toBeUndefined();
  for (const headers of [{ 'x-replace': 'yes' }, {}]) {
    const { errors } = await gateway.ask(PAGE, {}, { headers: headers as Record<string, string> });
    expect(errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
  }
});

/** Answers with this result, whatever was executed. */
async function sentAs(result: unknown): Promise<Response> {
  const gateway = await startWith({
    onExecute: () => ({ onExecuteDone: ({ setResult }) => setResult(result as ExecutionResult) }),
  });
  return ask(gateway, '{ __typename }', {}, 'application/json');
}

describe('a result that a plugin changes', () => {
  test('is sent as JSON writes it, with the status and headers of its extensions', async () => {
    const elements = [1, '\u2028', null, undefined, { id: 1, gone: undefined }];
    const list = Array.from({ length: 2_500 }, (_, at) => elements[at % 5]);
    const data = { list, gone: undefined, at: new Date(0), none: [], 'a "key"': list };
    const http = { status: 203, headers: { 'X-Kept': 'no' } };
    const response = await sentAs({ data, extensions: { cost: 1, http } });
    expect([response.status, response.headers.get('x-kept')]).toEqual([203, 'no']);
    expect(await response.text()).toBe(JSON.stringify({ data, extensions: { cost: 1 } }));
  });

  test('is refused if it has neither data nor errors', async () => {
    const gateway = await startWith({ onParams: ({ setResult }) => setResult({}) });
    const { errors } = await gateway.ask(PAGE);
    expect(errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
  });
});

test('a plugin that changes the document cannot add a field that the caller may not read', async () => {
  const adding: Plugin = {
    onParse: ({ params, setParsedDocument }) => {
      if (params.source) setParsedDocument(parse('{ me { name email } }'));
    },
  };
  await using world = await startGatewayOverFake(
    { schema: peopleService().schema },
    { snapshot: peopleSdl, overrides: scopes, config: { auth: keys }, plugins: [adding] },
  );
  const answerTo = (key: 'all' | 'few') => world.ask('{ me { name } }', {}, as(key));
  expect(JSON.stringify(await answerTo('all'))).toContain(SECRET);
  const few = await answerTo('few');
  expect(JSON.stringify(few)).not.toContain(SECRET);
  expect(few.errors!.map(({ extensions }) => extensions)).toEqual([{ code: 'FORBIDDEN' }]);
});
