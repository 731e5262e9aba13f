import {
  GraphQLError,
  parse,
  visit,
  type ASTVisitor,
  type ExecutionResult,
  type ValidationContext,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  startGatewayOverSandbox,
  type TestGateway,
  type TestGatewayOptions,
} from '../support/gateway/gateway.ts';

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

describe('variables that a plugin changes', () => {
  const QUERY = 'query ($count: Int!) { persons(first: $count) { items { id } } }';
  test('count', async () => {
    const gateway = await startWith(changed({ count: 3 }));
    const { data } = await gateway.ask<{ persons: { items: unknown[] } }>(QUERY, { count: 1 });
    expect(data.persons.items).toHaveLength(3);
  });

  test.each([[{ count: 'x' }], [{}], [{ count: null }]])('are checked: %j', async (variables) => {
    const gateway = await startWith(changed(variables));
    const { data, errors } = await gateway.ask(QUERY, { count: 1 });
    expect(data).toBeUndefined();
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'BAD_USER_INPUT' });
  });
});

test('a field that a plugin adds is read, and the plugin can remove it from the answer', async () => {
  const withTypes: Plugin = {
    onExecute({ executeFn, setExecuteFn }) {
      setExecuteFn((args) => {
        const document = visit(args.document, {
          SelectionSet: (node) => ({
            ...node,
            selections: [
              ...node.selections,
              ...parse('{ added: __typename }').definitions.flatMap((definition) =>
                'selectionSet' in definition && definition.selectionSet
                  ? definition.selectionSet.selections
                  : [],
              ),
            ],
          }),
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

test.each<readonly [string, Plugin]>([
  ['at its beginning', { onPluginInit: ({ setSchema }) => setSchema({}) }],
  ['when it sees the schema', { onSchemaChange: ({ replaceSchema }) => replaceSchema({}) }],
])('a plugin that replaces the schema %s is refused at the start', async (_, plugin) => {
  await expect(startGatewayOverSandbox({}, { plugins: [plugin] })).rejects.toThrow(
    /plugin.*schema/i,
  );
});

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

const element = (i: number) =>
  [i, `\u2028${i}`, null, undefined, { id: i, gone: undefined }][i % 5];

describe('a result that a plugin changes', () => {
  test('is sent as it is then, with the status and headers of its extensions', async () => {
    const http = { status: 203, headers: { 'X-Kept': 'no' } };
    const gateway = await startWith({
      onExecute: () => ({
        onExecuteDone: ({ result, setResult }) =>
          setResult({ ...(result as ExecutionResult), extensions: { cost: 1, http } }),
      }),
    });
    const response = await gateway.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ __typename }' }),
    });
    expect([response.status, response.headers.get('x-kept')]).toEqual([203, 'no']);
    expect(await response.json()).toEqual({
      data: { __typename: 'Query' },
      extensions: { cost: 1 },
    });
  });

  test.each([
    ['short', 3, {}],
    ['long', 2_500, {}],
    ['long, with extensions', 2_000, { extensions: { cost: 1 } }],
  ])('is written as JSON writes it: %s lists', async (_, length, more) => {
    const list = Array.from({ length }, (__, i) => element(i));
    const data = { list, gone: undefined, at: new Date(0), none: [], 'a "key"': list };
    const gateway = await startWith({
      onExecute: () => ({
        onExecuteDone: ({ setResult }) => setResult({ data, ...more } as never),
      }),
    });
    const response = await gateway.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ __typename }' }),
    });
    expect(await response.text()).toBe(JSON.stringify({ data, ...more }));
  });

  test('is refused if it has neither data nor errors', async () => {
    const gateway = await startWith({ onParams: ({ setResult }) => setResult({}) });
    const { errors } = await gateway.ask(PAGE);
    expect(errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
  });
});
