import { GraphQLError, print, parse, type DocumentNode, type ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask } from '../support/clients/multipart.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import { type TestGateway } from '../support/gateway/gateway.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { json } from '../service/replies.ts';
import {
  FAILING,
  got,
  REFUSED,
  settings,
  STREAMED,
  WHOLE,
  type Got,
  type TestRequest,
} from './requests.ts';

/** What the hooks of a plugin were given for one request, under their names. */
type Given = Map<string, unknown[]>;
const given: Given = new Map();
let plain: TestGateway;
let hooked: TestGateway;
beforeAll(async () => {
  plain = await startGatewayOverService({}, { config: settings });
  hooked = await startGatewayOverService({}, { config: settings, plugins: [everyHook(keep)] });
});
afterAll(async () => {
  await plain[Symbol.asyncDispose]();
  await hooked[Symbol.asyncDispose]();
});

/** Keeps copies, as plugins make them. */
function keep(hook: string, value: unknown): void {
  const copy = { ...(value as object) } as { result?: unknown };
  const { result } = copy;
  if (hook.startsWith('onExecuteDone') && !isAsyncIterable(result)) {
    copy.result = { ...(result as object) };
  }
  given.set(hook, [...(given.get(hook) ?? []), copy]);
}

/** Sends a request, which is answered as without the plugin. @returns what the hooks were given, and the answer */
async function seenOf(request: TestRequest): Promise<{ hooks: string[]; answer: Got }> {
  const expected = await got(plain, request);
  given.clear();
  const answer = await got(hooked, request);
  expect(answer).toEqual(expected);
  expect(first('onResponse')).toMatchObject({ response: { status: answer.status } });
  return { hooks: [...given.keys()], answer };
}

function first(hook: string): unknown {
  return given.get(hook)![0];
}

function resultsOf(hook: string): unknown[] {
  return (given.get(hook) ?? []).map((value) => (value as { result: unknown }).result);
}

const BEFORE =
  'onRequest,onRequestParse,onRequestParseDone,onParams,onEnveloped,onParse,onParseDone,onValidate,onValidateDone,' +
  'onContextBuilding,onContextBuildingDone,onExecute';
const AFTER = ['onExecuteDone', 'onExecutionResult', 'onResultProcess', 'onResponse'];
const ofStreams = ['onExecuteDone.onNext', 'onExecuteDone.onEnd'];

test.each([...WHOLE, ...FAILING, ...STREAMED])(
  'each hook is called once for $name, with true values',
  async (request) => {
    const { hooks, answer } = await seenOf(request);
    const once = hooks.filter((hook) => !ofStreams.includes(hook));
    expect(once.slice(0, -AFTER.length).toSorted()).toEqual(BEFORE.split(',').toSorted());
    if (!STREAMED.includes(request)) expect(once.slice(-AFTER.length)).toEqual(AFTER);
    for (const hook of once) expect([hook, given.get(hook)!.length]).toEqual([hook, 1]);

    const { args } = first('onExecute') as {
      args: { document: DocumentNode; operationName?: string };
    };
    if (request.query !== undefined) {
      expect(first('onParams')).toMatchObject({ params: { query: request.query } });
      expect(print(args.document)).toBe(print(parse(request.query)));
      expect(args).toMatchObject({ operationName: request.operationName });
    }
    expect(first('onParseDone')).toMatchObject({ result: args.document });
    expect(first('onValidateDone')).toMatchObject({ valid: true });

    // Every payload, in the format of its caller.
    const parts = [...answer.text.matchAll(/\r\n\r\n(\{.*\})\r\n---/g)].map(([, part]) => part!);
    const isWhole = answer.text.startsWith('{');
    const payloads = (isWhole ? [answer.text] : parts).map((text) => JSON.parse(text) as object);
    const results = resultsOf(isWhole ? 'onExecuteDone' : ofStreams[0]!);
    expect(JSON.parse(JSON.stringify(results))).toEqual(payloads);
    expect(given.has(ofStreams[1]!)).toBe(!isWhole);
  },
);

describe('hooks see', () => {
  test('variables with their defaults, and data as plain objects', async () => {
    await seenOf(WHOLE.find(({ name }) => name === 'a connection')!);
    expect(first('onExecute')).toMatchObject({ args: { variableValues: { count: 7 } } });
    expect(resultsOf('onExecuteDone')).toMatchObject([
      { data: { personsConnection: { totalCount: 137 } } },
    ]);
  });

  test('errors of GraphQL, which a plugin that reports others does not take for its own', async () => {
    await seenOf(FAILING[1]!);
    const [{ data, errors }] = resultsOf('onExecuteDone') as [ExecutionResult];
    expect(data).toMatchObject({ persons: { items: [{}] }, personsConnection: null });
    expect(errors).toHaveLength(1);
    const { originalError } = errors![0]!;
    expect(errors![0]).toBeInstanceOf(GraphQLError);
    expect(originalError === undefined || originalError instanceof GraphQLError).toBe(true);
  });

  test('a syntax error', async () => {
    await seenOf(REFUSED.find(({ name }) => name === 'a syntax error')!);
    expect(resultsOf('onParseDone')[0]).toBeInstanceOf(GraphQLError);
  });

  test('a document that is not valid, and its errors', async () => {
    await seenOf(REFUSED.find(({ name }) => name === 'an unknown field')!);
    const { valid, result } = first('onValidateDone') as { valid: boolean; result: unknown[] };
    expect([valid, result.length]).toEqual([false, 2]);
    expect(result[0]).toBeInstanceOf(GraphQLError);
    const { params } = first('onValidate') as { params: { documentAST: DocumentNode } };
    expect(print(params.documentAST)).toContain('nope');
  });

  test.each(REFUSED)('of $name: the response, and no result', async (request) => {
    const { hooks } = await seenOf(request);
    expect(hooks).not.toContain('onExecuteDone');
    if (request.name.endsWith(' credential')) expect(hooks).toEqual(['onResponse']);
  });
});

test('hooks of a plugin that another plugin adds are called', async () => {
  const called: string[] = [];
  const added = everyHook((hook) => called.push(hook));
  const adding: Plugin = { onPluginInit: ({ addPlugin }) => addPlugin(added) };
  await using gateway = await startGatewayOverService({}, { plugins: [adding] });
  expect((await gateway.ask('{ __typename }')).errors).toBeUndefined();
  expect(called).toContain('onExecute');
});

test.each([
  ['no plugin', []],
  ['a plugin', [everyHook()]],
])('what the service calls http is passed on, and sets no status, with %s', async (_, plugins) => {
  await using gateway = await startGatewayOverService({}, { plugins });
  const http = { status: 418, headers: { 'set-cookie': 'a=b' } };
  const error = { message: 'No.', path: ['persons'], extensions: { code: 'NO', http } };
  gateway.service.answer(
    json({ data: { persons: null }, errors: [error], extensions: { http, cost: 1 } }),
  );
  for (const query of ['{ persons { items { id } } }', '{ allPersons { id } }']) {
    const response = await ask(gateway, query, {}, 'application/json');
    expect([response.status, response.headers.get('set-cookie')]).toEqual([200, null]);
    const { errors, extensions } = (await response.json()) as ExecutionResult;
    expect(errors).toMatchObject([{ message: 'No.', extensions: error.extensions }]);
    if (!query.includes('all')) expect(extensions).toEqual({ http, cost: 1 });
  }
});
