import {
  GraphQLError,
  parse,
  visit,
  type ASTVisitor,
  type OperationDefinitionNode,
  type ValidationContext,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { expect, onTestFinished, test } from 'vitest';
import { type TestGateway, type TestGatewayOptions } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';

type Config = TestGatewayOptions['config'];

async function startWith(plugin: Plugin, config: Config = {}): Promise<TestGateway> {
  const gateway = await startGatewayOverService({}, { config: config ?? {}, plugins: [plugin] });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

const PAGE = '{ persons(first: 1) { items { id } } }';
const COUNTED = 'query ($count: Int!) { persons(first: $count) { items { id } } }';

const replacing = (query: string): Record<string, Plugin> => ({
  onParams: { onParams: ({ params, setParams }) => setParams({ ...params, query }) },
  onParse: { onParse: ({ setParsedDocument }) => setParsedDocument(parse(query)) },
  executeFn: executing({ document: parse(query) }),
});

/** Executes the operation with these arguments in place of its own. */
function executing(changed: object): Plugin {
  return {
    onExecute({ executeFn, setExecuteFn }) {
      setExecuteFn((args) => executeFn({ ...args, ...changed }) as unknown);
    },
  };
}

const noFirstNames = (context: ValidationContext): ASTVisitor => ({
  Field(node) {
    if (node.name.value !== 'firstName') return;
    context.reportError(new GraphQLError('No first names here.', { nodes: node }));
  },
});

interface Changed {
  /** What the plugins replace the operation by, each in another hook. */
  readonly by?: string;
  readonly plugin?: Plugin;
  /** What the caller sends. Default: the type name. */
  readonly query?: string;
  readonly config?: Config;
}

const refused = (code: string, more: object = {}) => ({
  errors: [{ extensions: { code }, ...more }],
});
const WRONG = refused('BAD_USER_INPUT');
const closed = { introspection: false };

test.each<[string, Changed, object]>([
  [
    'is answered',
    { by: '{ persons(first: 2) { items { name: firstName } } }' },
    { data: { persons: { items: [{ name: 'Emma' }, {}] } } },
  ],
  ['is refused if it has an unknown field', { by: '{ nope }' }, WRONG],
  [
    'is refused if it has too many aliases',
    { by: '{ a: __typename b: __typename c: __typename }', config: { maxAliases: 2 } },
    refused('OPERATION_TOO_COMPLEX'),
  ],
  [
    'is refused if it introspects where nobody may',
    { by: '{ __schema { __typename } }', config: closed },
    WRONG,
  ],
  [
    'is refused if it asks for the SDL where nobody may',
    { by: '{ _service { sdl } }', config: closed },
    refused('FORBIDDEN'),
  ],
  [
    'has the variables of the plugin',
    { plugin: executing({ variableValues: { count: 3 } }), query: COUNTED },
    { data: { persons: { items: [{}, {}, {}] } } },
  ],
  ...[{ count: 'x' }, {}, { count: null }].map((variableValues): [string, Changed, object] => [
    `is refused with the variables ${JSON.stringify(variableValues)} of the plugin`,
    { plugin: executing({ variableValues }), query: COUNTED },
    WRONG,
  ]),
  [
    'is refused by a rule of the plugin',
    {
      plugin: { onValidate: ({ addValidationRule }) => addValidationRule(noFirstNames) },
      query: '{ persons(first: 1) { items { id firstName } } }',
    },
    refused('BAD_USER_INPUT', {
      message: 'No first names here.',
      locations: [{ line: 1, column: 34 }],
    }),
  ],
  [
    'is not made valid by a plugin',
    { plugin: { onValidate: ({ setResult }) => setResult([]) }, query: '{ nope }' },
    { errors: [{}] },
  ],
  [
    'is refused if its result has neither data nor errors',
    { plugin: { onParams: ({ setResult }) => setResult({}) } },
    refused('INTERNAL_SERVER_ERROR'),
  ],
])('an operation that a plugin changes %s', async (_, { by, plugin, query, config }, expected) => {
  for (const each of by === undefined ? [plugin!] : Object.values(replacing(by))) {
    const gateway = await startWith(each, config);
    for (let time = 0; time < 2; time += 1) {
      const answer = await gateway.ask(query ?? '{ __typename }', { count: 1 });
      expect(answer).toMatchObject(expected);
      expect('data' in answer).toBe('data' in expected);
    }
  }
});

test('a plugin cannot make a mutation of a GET', async () => {
  const gateway = await startWith({
    onParams: ({ setParams }) => setParams({ query: 'mutation { rename }' }),
  });
  const headers = { 'apollo-require-preflight': 'yes' };
  const response = await gateway.fetch('/graphql?query={__typename}', { headers });
  expect(response.status).toBe(405);
});

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
  await expect(startGatewayOverService({}, { plugins: [plugin] })).rejects.toThrow(reason);
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
