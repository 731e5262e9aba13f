import {
  buildSchema,
  GraphQLError,
  Kind,
  parse,
  visit,
  type DocumentNode,
  type ExecutionResult,
  type ValidationRule,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { describe, expect, onTestFinished, test } from 'vitest';
import { everyHook } from '../support/gateway/every-hook.ts';
import { gathered, partsOf } from '../support/clients/multipart.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { post, startFront, type Body, type Front } from './front.ts';

const ME = '{ me { id } }';
const KEY = 'key-of-a-reader';

describe('the hooks of a plugin', () => {
  const STEPS = [
    'onRequest',
    'onRequestParse',
    'onRequestParseDone',
    'onParams',
    'onEnveloped',
    'onParse',
    'onParseDone',
    'onValidate',
    'onValidateDone',
    'onContextBuilding',
    'onContextBuildingDone',
    'onExecute',
    'onExecuteDone',
    'onExecutionResult',
    'onResultProcess',
    'onResponse',
  ];

  test('are all called, each once and in the order of Yoga, for an operation', async () => {
    const called: string[] = [];
    const front = await started(everyHook((hook) => called.push(hook)));
    expect(await ask(front, ME)).toEqual({ data: { me: { id: 1 } } });
    expect(called).toEqual(STEPS);
  });

  test('see the payloads of a stream, and its end', async () => {
    const called: string[] = [];
    const seen: unknown[] = [];
    const front = await started([
      everyHook((hook) => called.push(hook)),
      {
        onExecute: () => ({
          onExecuteDone: () => ({ onNext: ({ result }) => void seen.push({ ...result }) }),
        }),
      },
    ]);
    const response = await sent(front, '{ allCandidates(limit: 3) @stream { id } }', {
      accept: 'multipart/mixed',
    });
    const payloads = await gathered(partsOf(response));
    expect(seen.length).toBeGreaterThan(1);
    expect(seen[0]).toMatchObject({ data: { allCandidates: [] }, hasNext: true });
    expect(seen.at(-1)).toMatchObject({ hasNext: false });
    expect(payloads.at(-1)).toMatchObject({ hasNext: false });
    expect(called.filter((hook) => hook === 'onExecuteDone.onNext')).toHaveLength(seen.length);
    expect(called).toContain('onExecuteDone.onEnd');
  });

  test.each([
    ['a syntax error', '{', 'onParseDone'],
    ['an operation that is not valid', '{ nothing }', 'onValidateDone'],
    [
      'too many levels',
      `{ candidate(id: 1) ${'{ vacancy { lead '.repeat(9)} { id } ${'} }'.repeat(9)} }`,
      'onValidateDone',
    ],
    ['wrong variables', 'query ($id: Int!) { candidate(id: $id) { id } }', 'onExecute'],
  ])('see %s, which is refused as without them', async (_, query, lastStep) => {
    const called: string[] = [];
    const front = await started(everyHook((hook) => called.push(hook)));
    const plain = await started();
    const [seen, unseen] = [await sent(front, query), await sent(plain, query)];
    expect([seen.status, await seen.json()]).toEqual([unseen.status, await unseen.json()]);
    const steps = STEPS.slice(0, STEPS.indexOf(lastStep) + 1);
    expect(called).toEqual([...steps, 'onExecutionResult', 'onResultProcess', 'onResponse']);
  });

  test('see the errors of a refused document', async () => {
    const errors: unknown[] = [];
    const front = await started({
      onParse:
        () =>
        ({ result }) =>
          void (result instanceof Error && errors.push(result.message)),
      onValidate:
        () =>
        ({ valid, result }) => {
          if (!valid) for (const { message } of result) errors.push(message);
        },
    });
    await sent(front, '{ me');
    await sent(front, '{ nothing }');
    expect(errors).toEqual([
      expect.stringMatching(/^Syntax Error/),
      expect.stringMatching(/^Cannot query field "nothing"/),
    ]);
  });

  test('see nothing of a caller without a credential but the request and the response', async () => {
    const called: string[] = [];
    const apiKeys = [entryFor(KEY, 'reader', 'read')];
    const auth = { apiKeys, jwt: undefined, routerCallers: undefined };
    const front = await started(
      everyHook((hook) => called.push(hook)),
      { auth },
    );
    expect((await sent(front, ME)).status).toBe(401);
    expect(called).toEqual(['onResponse']);
  });

  test('are called for plugins that a plugin has added, though it has no such hook itself', async () => {
    const called: string[] = [];
    const front = await started({
      onPluginInit: ({ addPlugin }) => addPlugin(everyHook((hook) => called.push(hook))),
    });
    await ask(front, ME);
    expect(called).toEqual(STEPS);
  });
});

test('a plugin that sees only requests and responses sees them, and can change the response', async () => {
  const seen: string[] = [];
  const front = await started({
    onRequest: ({ request, url }) => {
      seen.push(request.headers.get('x-name') ?? '', url.pathname, url.search);
    },
    onResponse: ({ response }) => {
      seen.push(response.headers.get('content-type') ?? '');
      response.headers.set('x-added', 'yes');
    },
  });
  const response = await sent(front, ME, { 'x-name': 'Ada' });
  expect(response.headers.get('x-added')).toBe('yes');
  expect(await response.json()).toEqual({ data: { me: { id: 1 } } });
  expect(seen).toEqual(['Ada', '/graphql', '', 'application/json; charset=utf-8']);
});

describe('a document that a plugin changes', () => {
  test('is answered as if it had been sent', async () => {
    const front = await started(selecting('{ id name again: id }'));
    expect(await ask(front, ME)).toEqual({
      data: { me: { id: 1, name: 'Candidate 1', again: 1 } },
    });
    expect(await ask(front, ME)).toEqual({
      data: { me: { id: 1, name: 'Candidate 1', again: 1 } },
    });
  });

  test.each([
    ['validation', '{ nothing }', 'BAD_USER_INPUT'],
    ['limits', '{ a: id b: id c: id }', 'OPERATION_TOO_COMPLEX'],
    ['reserved names', '{ _rs: id }', 'BAD_USER_INPUT'],
  ])('is refused by %s', async (_, replaced, code) => {
    const front = await started(selecting(replaced), { maxAliases: 2 });
    const { data, errors } = await ask(front, ME);
    expect([data, errors?.[0]?.extensions.code]).toEqual([undefined, code]);
  });

  test.each([
    ['before it is executed', 'onExecute'],
    ['by its text', 'onParams'],
  ])('%s is checked too', async (_, hook) => {
    const text = '{ _service { sdl } }';
    const front = await started(
      hook === 'onExecute'
        ? { onExecute: ({ args }) => void Object.assign(args, { document: parse(text) }) }
        : { onParams: ({ params, setParams }) => setParams({ ...params, query: text }) },
      { introspection: false },
    );
    const { data, errors } = await ask(front, ME);
    expect([data, errors?.[0]?.extensions.code]).toEqual([undefined, 'FORBIDDEN']);
  });

  test('cannot make a mutation of a GET', async () => {
    const front = await started({
      onParams: ({ setParams }) =>
        setParams({ query: 'mutation { rename(id: 1, name: "New") { id } }' }),
    });
    const response = await fetch(`${front.url}/graphql?query=${encodeURIComponent(ME)}`, {
      headers: { 'apollo-require-preflight': 'yes' },
    });
    expect(response.status).toBe(405);
    expect(front.sent.renames).toBe(0);
  });
});

describe('variables', () => {
  const BY_ID = 'query ($id: Int!) { candidate(id: $id) { id } }';

  test.each<[string, Plugin]>([
    [
      'onParams',
      { onParams: ({ params, setParams }) => setParams({ ...params, variables: { id: 7 } }) },
    ],
    ['onParams, in place', { onParams: ({ params }) => void (params.variables!['id'] = 7) }],
    ['onExecute', { onExecute: ({ args }) => void (args.variableValues = { id: 7 }) }],
  ])('that a plugin changes in %s are used', async (_, changing) => {
    const front = await started(changing);
    expect(await ask(front, BY_ID, { id: 3 })).toEqual({ data: { candidate: { id: 7 } } });
  });

  test('that a plugin makes wrong are refused', async () => {
    const front = await started({
      onExecute: ({ args }) => void (args.variableValues = { id: 'x' }),
    });
    const { errors } = await ask(front, BY_ID, { id: 3 });
    expect(errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
  });
});

test('validation rules that a plugin adds refuse operations', async () => {
  const front = await started({ onValidate: ({ addValidationRule }) => addValidationRule(noMe) });
  const refused = await sent(front, ME, { accept: 'application/graphql-response+json' });
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({
    errors: [{ message: 'Not me.', extensions: { code: 'BAD_USER_INPUT' } }],
  });
  expect(await ask(front, '{ candidate(id: 3) { id } }')).toEqual({
    data: { candidate: { id: 3 } },
  });
});

describe('a plugin that replaces the schema', () => {
  const other = buildSchema('type Query { other: Int }');

  test.each<[string, Plugin]>([
    ['at its start', { onPluginInit: ({ setSchema }) => setSchema(other) }],
    ['when it sees it', { onSchemaChange: ({ replaceSchema }) => replaceSchema(other) }],
  ])('%s is refused at the start', async (_, replacing) => {
    await expect(startFront({ plugins: [replacing] })).rejects.toThrow(
      'A plugin replaces the schema of the gateway',
    );
  });

  test('with a request gets that request refused, and every later one', async () => {
    const front = await started({
      onEnveloped: ({ context, setSchema }) => {
        if ((context as { request?: Request })?.request?.headers.has('x-replace')) setSchema(other);
      },
    });
    expect(await ask(front, ME)).toHaveProperty('data.me');
    for (const headers of [{ 'x-replace': 'yes' }, {}]) {
      const body = (await (await sent(front, ME, headers)).json()) as Body;
      expect(body.errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
    }
  });
});

describe('a result', () => {
  test('that a plugin gives instead of executing the operation is sent', async () => {
    const front = await started({
      onExecute: ({ setResultAndStopExecution }) =>
        setResultAndStopExecution({ data: { me: { id: 'kept' } } }),
    });
    expect(await ask(front, ME)).toEqual({ data: { me: { id: 'kept' } } });
    await expect
      .poll(() => front.gateway.logged.filter(({ msg }) => msg === 'request'))
      .toMatchObject([{ status: 200, operationType: 'query' }]);
  });

  test('that a plugin changes is sent as it is then, with the status and headers of its extensions', async () => {
    const front = await started({
      onExecute: () => ({
        onExecuteDone: ({ result, setResult }) => {
          const http = { status: 203, headers: { 'X-Kept': 'no' } };
          setResult({ ...(result as ExecutionResult), extensions: { cost: 1, http } });
        },
      }),
    });
    const response = await sent(front, ME);
    expect([response.status, response.headers.get('x-kept')]).toEqual([203, 'no']);
    expect(await response.json()).toEqual({ data: { me: { id: 1 } }, extensions: { cost: 1 } });
  });

  test('without data and errors is refused, and reported to the operator', async () => {
    const front = await started({ onResultProcess: ({ setResult }) => setResult({}) });
    // A plan has answered the operation: what a plugin leaves of the answer is its own decision.
    expect(await ask(front, ME)).toEqual({});
    const instead = await started({ onParams: ({ setResult }) => setResult({}) });
    const { errors } = await ask(instead, ME);
    expect(errors).toMatchObject([{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }]);
  });
});

describe('what a plugin throws', () => {
  test.each<[string, Plugin]>([
    ['onRequest', { onRequest: fail }],
    ['onRequestParse', { onRequestParse: fail }],
    ['onParams', { onParams: fail }],
    ['onEnveloped', { onEnveloped: fail }],
    ['onParse', { onParse: fail }],
    ['onValidate', { onValidate: fail }],
    ['onContextBuilding', { onContextBuilding: fail }],
    ['onExecute', { onExecute: fail }],
    ['onExecuteDone', { onExecute: () => ({ onExecuteDone: fail }) }],
    ['onExecutionResult', { onExecutionResult: fail }],
    ['onResultProcess', { onResultProcess: fail }],
    ['onResponse', { onResponse: fail }],
  ])('in %s reaches callers as an id only, and the log whole', async (_, failing) => {
    const front = await started(failing);
    for (const response of [
      await sent(front, ME),
      await front.gateway.fetch('/graphql', post({ query: ME })),
    ]) {
      const text = await response.text();
      expect(text).not.toContain('Secret');
      const { errors } = JSON.parse(text) as Body;
      expect(errors).toMatchObject([
        { extensions: { code: 'INTERNAL_SERVER_ERROR', id: expect.any(String) as string } },
      ]);
    }
    const logged = front.gateway.logged.filter(({ msg }) => msg === 'unexpected error');
    expect(JSON.stringify(logged)).toContain('Secret words');
  });
});

describe.each([
  ['no plugin', []],
  ['a plugin with every hook', [everyHook()]],
])('with %s, Yoga itself answers nothing before the checks', (_, plugins) => {
  test.each([
    ['a path that ends like that of a probe', '//evil/graphql?x=/health', 'POST', 404],
    ['a probe of Yoga', '/graphql?x=/health', 'POST', 200],
    ['GraphiQL for another host', '/graphql', 'GET', 421],
    ['another path', '/', 'POST', 404],
  ])('%s', async (_what, path, method, status) => {
    const front = await started(plugins, { graphiql: true });
    const host = status === 421 ? 'evil.example' : 'localhost';
    const response = await front.gateway.gateway.handler.fetch(`http://${host}${path}`, {
      method,
      headers: { accept: 'text/html, application/json', 'content-type': 'application/json' },
      ...(method === 'POST' && { body: JSON.stringify({ query: ME }) }),
    });
    expect(response.status).toBe(status);
    if (status === 200) expect(await response.json()).toEqual({ data: { me: { id: 1 } } });
  });
});

async function started(
  plugins: Plugin | readonly Plugin[] = [],
  config?: TestGatewayOptions['config'],
): Promise<Front> {
  const front = await startFront({ plugins: [plugins].flat(), ...(config && { config }) });
  onTestFinished(() => front[Symbol.asyncDispose]());
  return front;
}

function sent(front: Front, query: string, headers: Record<string, string> = {}) {
  const init = post({ query }, { accept: 'application/json', ...headers });
  return fetch(`${front.url}/graphql`, init);
}

async function ask(front: Front, query: string, variables?: object): Promise<Body> {
  const init = post({ query, variables }, { accept: 'application/json' });
  return (await (await fetch(`${front.url}/graphql`, init)).json()) as Body;
}

/** Selects something else of `me`. */
function selecting(replaced: string): Plugin {
  return {
    onParse:
      () =>
      ({ result, replaceParseResult }) => {
        const [selected] = parse(replaced).definitions;
        const changed = visit(result as DocumentNode, {
          Field: (field) =>
            field.name.value === 'me' && selected?.kind === Kind.OPERATION_DEFINITION
              ? { ...field, selectionSet: selected.selectionSet }
              : undefined,
        });
        replaceParseResult(changed);
      },
  };
}

const noMe: ValidationRule = (context) => ({
  Field: (node) => {
    if (node.name.value === 'me') context.reportError(new GraphQLError('Not me.', { nodes: node }));
  },
});

function fail(): never {
  throw new Error('Secret words');
}
