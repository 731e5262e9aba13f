import { usePrometheus } from '@graphql-yoga/plugin-prometheus';
import { useResponseCache } from '@graphql-yoga/plugin-response-cache';
import {
  GraphQLError,
  parse,
  type ASTVisitor,
  type ExecutionResult,
  type ValidationContext,
} from 'graphql';
import { createGraphQLError, type Plugin } from 'graphql-yoga';
import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { json } from '../service/replies.ts';
import { IN_PARTS } from '../support/clients/multipart.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import { CONFIG, got, ORIGIN, PAGE, READER, startWith, STREAM, WRITER } from './gateway.ts';

// Plugins that change an operation or its answer, or answer themselves.

const COOKIES = ['a=1', 'b=2'];
const ownPath: Plugin = {
  onRequest: ({ url, fetchAPI, endResponse }) => {
    if (url.pathname !== '/report') return;
    const headers = new Headers(COOKIES.map((cookie) => ['set-cookie', cookie]));
    endResponse(new fetchAPI.Response('mine', { headers }));
  },
};

test('a plugin that serves a path of its own gets it behind the checks of host and credential, alone or beside another plugin', async () => {
  for (const plugins of [[ownPath], [everyHook(), ownPath]]) {
    const { gateway } = await startWith(plugins);
    for (const [address, key, status] of [
      ['http://localhost/report', READER, 200],
      ['http://localhost/report', '', 401],
      ['http://localhost/elsewhere', READER, 404],
      ['http://evil.example/report', READER, 421],
    ] as const) {
      const response = await gateway.handler.fetch(address, { headers: { 'x-api-key': key } });
      expect(response.status).toBe(status);
      expect((await response.text()) === 'mine').toBe(status === 200);
      expect(response.headers.getSetCookie()).toEqual(status === 200 ? COOKIES : []);
    }
  }
});

const refusing = (code: string, http: object) =>
  createGraphQLError('Not now.', { extensions: { code, http } });
const answering = (result: ExecutionResult): Plugin => ({
  onExecute: ({ setResultAndStopExecution }) => setResultAndStopExecution(result),
  onResponse: async ({ response }) => void (await response.clone().text()),
});
const MINE = { 'x-mine': '1' };
const VALUES = [1, '\u2028', null, undefined, { id: 1, gone: undefined }];
const LONG = Array.from({ length: 2_500 }, (_, at) => ({ at }));
const DATA = {
  list: VALUES,
  gone: undefined,
  at: new Date(0),
  none: [],
  'a "key"': VALUES,
  LONG,
  last: 1,
};

test.each<[string, Plugin, status: number, mine: string | undefined, body: unknown]>([
  [
    'a response in onRequest',
    {
      onRequest: ({ endResponse, fetchAPI: { Response } }) =>
        endResponse(new Response('"mine"', { status: 418, headers: { ...MINE, vary: 'X-Mine' } })),
      onResultProcess: () => {},
    },
    418,
    '1',
    'mine',
  ],
  [
    'values that JSON writes in other words, a long list, and a status for HTTP',
    answering({
      data: DATA,
      extensions: {
        cost: 1,
        http: { status: 203, headers: { ...MINE, 'Content-Type': 'text/plain' } },
      },
    }),
    203,
    '1',
    { data: DATA, extensions: { cost: 1 } },
  ],
  [
    'errors that have a status and headers, of which the highest is sent',
    answering({
      data: null,
      errors: [refusing('NO', { status: 400 }), refusing('LATER', { status: 503, headers: MINE })],
    }),
    503,
    '1',
    { data: null, errors: [said('NO'), said('LATER')] },
  ],
  [
    'an error of GraphQL that it throws',
    {
      onExecute: () => {
        throw refusing('FORBIDDEN', { status: 403 });
      },
    },
    403,
    undefined,
    { errors: [said('FORBIDDEN')] },
  ],
  [
    'a refusal in onParams, with what it adds to it',
    {
      onParams: ({ setResult }) =>
        setResult({ errors: [refusing('FORBIDDEN', {})], extensions: { cost: 1, http: {} } }),
    },
    200,
    undefined,
    { errors: [said('FORBIDDEN')], extensions: { cost: 1 } },
  ],
  [
    'a result in onParams',
    {
      onParams: ({ setResult }) =>
        setResult({ data: { mine: 1 }, extensions: { http: { headers: MINE } } }),
    },
    200,
    '1',
    { data: { mine: 1 } },
  ],
])('a plugin can answer with %s', async (_, plugin, expected, mine, body) => {
  const gateway = await startWith([plugin]);
  for (const [query, accept] of [
    [PAGE, 'application/json'],
    [STREAM, IN_PARTS],
  ] as const) {
    const { status, headers, text } = await got(gateway, query, { accept });
    expect([status, headers['x-mine']]).toEqual([expected, mine]);
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(body)));
    expect(headers['access-control-allow-origin']).toBe(ORIGIN);
    if (status !== 418) expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers['vary']).toBe(status === 418 ? 'X-Mine, Origin' : 'Origin');
  }
  expect((await got(gateway, PAGE, { key: '' })).status).toBe(401);
  expect((await gateway.fetch('/health')).status).toBe(200);
  expect(gateway.service.received.length).toBe(0);
});

function said(code: string) {
  return { message: 'Not now.', extensions: { code } };
}

test('what the service calls http sets no status, and further keys of its errors are passed on, with a plugin or without', async () => {
  const http = { status: 418, headers: MINE };
  const error = { message: 'No.', path: ['persons'], extensions: { code: 'NO', http }, type: 'NO' };
  const extensions = { cost: 1 };
  for (const plugins of [[], [everyHook()]]) {
    const gateway = await startWith(plugins);
    const failed = { errors: [error], extensions };
    const data = { persons: null };
    for (const body of [{ data, extensions }, { data, ...failed }, failed]) {
      gateway.service.answer(json(body));
      const { status, headers, text } = await got(gateway, PAGE);
      expect([status, headers['x-mine']]).toEqual([200, undefined]);
      const shown = { errors: [{ ...error, extensions: { code: 'NO' } }] };
      expect(JSON.parse(text)).toMatchObject({ ...body, ...('errors' in body && shown) });
      expect(text).not.toContain('"extensions":{"code":"NO","http"');
    }
  }
});

const COUNTED = 'query ($count: Int!) { persons(first: $count) { items { id } } }';
const TWO = 'query One { one: __typename } query Two { two: __typename }';

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
const answeringPersons = (...items: object[]) => ({ data: { persons: { items } } });

test.each<[string, readonly Plugin[], expected: object, query?: string]>([
  [
    'is answered',
    replacing('{ persons(first: 2) { items { name: firstName } } }'),
    answeringPersons({ name: 'Emma' }, {}),
  ],
  ['is refused if it has an unknown field', replacing('{ nope }'), WRONG],
  [
    'is refused if it has too many aliases',
    replacing('{ a: __typename b: __typename c: __typename d: __typename e: __typename }'),
    refused('OPERATION_TOO_COMPLEX'),
  ],
  ['is refused if it asks for the SDL', replacing('{ _service { sdl } }'), refused('FORBIDDEN')],
  [
    'has the name of the plugin',
    [executing({ operationName: 'Two' })],
    { data: { two: 'Query' } },
    TWO,
  ],
  [
    'has the variables of the plugin',
    counting({ count: 3 }),
    answeringPersons({}, {}, {}),
    COUNTED,
  ],
  ['is refused with a wrong variable of the plugin', counting({ count: 'x' }), WRONG, COUNTED],
  ['is refused without a variable', counting({}), WRONG, COUNTED],
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
      const gateway = await startWith([plugin]);
      const operationName = query === TWO ? 'One' : undefined;
      for (let time = 0; time < 2; time += 1) {
        const { text } = await got(gateway, query, { variables: { count: 1 }, operationName });
        const answer = JSON.parse(text) as object;
        expect(answer).toMatchObject(expected);
        expect('data' in answer).toBe('data' in expected);
      }
    }
  },
);

test('a plugin cannot make a mutation of a GET', async () => {
  const query = 'mutation { rename }';
  const gateway = await startWith([{ onParams: ({ setParams }) => setParams({ query }) }]);
  const headers = { 'x-api-key': READER };
  const response = await gateway.fetch('/graphql?query={__typename}', { headers });
  expect(response.status).toBe(405);
});

describe('the response cache of Yoga, beside its Prometheus', () => {
  test('changes no answer, and a second one costs no upstream request unless it failed', async () => {
    const plain = await startWith([]);
    const { cached, requests } = await startCached();
    for (const [query, isKept] of [
      [PAGE, true],
      ['{ allPersons(limit: 120) { id firstName } }', true],
      ['{ personsConnection(first: 7) { nodes { id } totalCount } }', true],
      ['{ personsConnection(first: -1) { nodes { id } } persons { items { id } } }', false],
      ['{ nope }', false],
    ] as const) {
      const expected = await got(plain, query);
      for (let turn = 0; turn < 2; turn += 1) {
        const before = requests();
        const { headers, text, status } = await got(cached, query);
        const { etag, 'last-modified': _, ...others } = headers;
        expect({ status, headers: others, text }).toEqual(expected);
        expect(etag !== undefined).toBe(isKept);
        if (isKept && turn === 1) expect(requests()).toBe(before);
      }
    }
  });

  test('keeps a stream as a whole list, counted once, for callers who may have it, who can name it by its entity tag', async () => {
    const { cached, registry, requests } = await startCached();
    const query = `query Streamed ${STREAM}`;
    await got(cached, query, { accept: IN_PARTS });
    const before = requests();
    const { headers, text } = await got(cached, query, { accept: IN_PARTS });
    expect(JSON.parse(text)).toMatchObject({ data: { allPersons: { length: 120 } } });
    expect(text).not.toContain('responseCache');
    expect(await registry.metrics()).toContain(
      'graphql_envelop_request{operationName="Streamed",operationType="query"} 1\n',
    );
    const known = { headers: { 'if-none-match': headers['etag']! } };
    expect(await got(cached, query, known)).toMatchObject({ status: 304, text: '' });
    expect((await got(cached, query, { ...known, key: '' })).status).toBe(401);
    const toWriter = (await got(cached, query, { key: WRITER })).text;
    expect([toWriter.includes('FORBIDDEN'), toWriter.includes('"data"')]).toEqual([true, false]);
    expect(requests()).toBe(before);
  });
});

async function startCached() {
  const registry = new Registry();
  const plugins = [
    useResponseCache({ session: () => null }),
    usePrometheus({ registry, endpoint: false }),
    everyHook(),
  ];
  // The cache adds aliases to operations.
  const cached = await startWith(plugins, { config: { ...CONFIG, maxAliases: 15 } });
  return { cached, registry, requests: () => cached.service.received.length };
}
