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
import type { TestGateway } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';

async function startWith(plugin: Plugin): Promise<TestGateway> {
  const config = { maxAliases: 4, introspection: false };
  const gateway = await startGatewayOverService({}, { config, plugins: [plugin] });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

const PAGE = '{ persons(first: 1) { items { id firstName } } }';
const COUNTED = 'query ($count: Int!) { persons(first: $count) { items { id } } }';

/** Executes the operation with these arguments in place of its own. */
const executing = (changed: object): Plugin => ({
  onExecute({ executeFn, setExecuteFn }) {
    setExecuteFn((args) => executeFn({ ...args, ...changed }) as unknown);
  },
});
/** Plugins that replace the operation, each in another hook. */
const replacing = (query: string): readonly Plugin[] => [
  { onParams: ({ params, setParams }) => setParams({ ...params, query }) },
  { onParse: ({ setParsedDocument }) => setParsedDocument(parse(query)) },
  executing({ document: parse(query) }),
];
const noFirstNames = (context: ValidationContext): ASTVisitor => ({
  Field(node) {
    if (node.name.value !== 'firstName') return;
    context.reportError(new GraphQLError('No first names here.', { nodes: node }));
  },
});

const refused = (code: string, more: object = {}) => ({
  errors: [{ extensions: { code }, ...more }],
});
const WRONG = refused('BAD_USER_INPUT');
const counting = (variableValues: object) => [executing({ variableValues })];

test.each<[string, readonly Plugin[], expected: object, query?: string]>([
  [
    'is answered',
    replacing('{ persons(first: 2) { items { name: firstName } } }'),
    { data: { persons: { items: [{ name: 'Emma' }, {}] } } },
  ],
  ['is refused if it has an unknown field', replacing('{ nope }'), WRONG],
  [
    'is refused if it has too many aliases',
    replacing('{ a: __typename b: __typename c: __typename d: __typename e: __typename }'),
    refused('OPERATION_TOO_COMPLEX'),
  ],
  ['is refused if it introspects', replacing('{ __schema { __typename } }'), WRONG],
  ['is refused if it asks for the SDL', replacing('{ _service { sdl } }'), refused('FORBIDDEN')],
  [
    'has the variables of the plugin',
    counting({ count: 3 }),
    { data: { persons: { items: [{}, {}, {}] } } },
    COUNTED,
  ],
  ['is refused with a wrong variable of the plugin', counting({ count: 'x' }), WRONG, COUNTED],
  ['is refused without a variable', counting({}), WRONG, COUNTED],
  ['is refused with a variable that is null', counting({ count: null }), WRONG, COUNTED],
  [
    'is refused by a rule of the plugin',
    [{ onValidate: ({ addValidationRule }) => addValidationRule(noFirstNames) }],
    refused('BAD_USER_INPUT', {
      message: 'No first names here.',
      locations: [{ line: 1, column: 34 }],
    }),
    PAGE,
  ],
  [
    'is not made valid by a plugin',
    [{ onValidate: ({ setResult }) => setResult([]) }],
    { errors: [{}] },
    '{ nope }',
  ],
  [
    'is refused if its result has neither data nor errors',
    [{ onParams: ({ setResult }) => setResult({}) }],
    refused('INTERNAL_SERVER_ERROR'),
  ],
])(
  'an operation that a plugin changes %s',
  async (_, plugins, expected, query = '{ __typename }') => {
    for (const plugin of plugins) {
      const gateway = await startWith(plugin);
      for (let time = 0; time < 2; time += 1) {
        const answer = await gateway.ask(query, { count: 1 });
        expect(answer).toMatchObject(expected);
        expect('data' in answer).toBe('data' in expected);
      }
    }
  },
);

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
