import { GraphQLError, print, parse, type ExecutionResult } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ask } from '../support/clients/multipart.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { json } from '../support/imitations/scripted.ts';
import { countedHooks, type Seen } from './counted-hooks.ts';
import {
  FAILING,
  got,
  REFUSED,
  send,
  settings,
  STREAMED,
  WHOLE,
  type TestRequest,
} from './requests.ts';

const seen: Seen[] = [];
let plain: TestGateway;
let hooked: TestGateway;
beforeAll(async () => {
  plain = await startGatewayOverSandbox({}, { config: settings });
  hooked = await startGatewayOverSandbox({}, { config: settings, plugins: [countedHooks(seen)] });
});
afterAll(async () => {
  await plain[Symbol.asyncDispose]();
  await hooked[Symbol.asyncDispose]();
});

/** Of one request. */
async function seenOf(request: TestRequest): Promise<Seen> {
  seen.length = 0;
  await (await send(hooked, request)).text();
  expect(seen).toHaveLength(1);
  return seen[0]!;
}

const BEFORE = [
  'request',
  'requestParse',
  'requestParseDone',
  'enveloped',
  'params',
  'parse',
  'parseDone',
  'validate',
  'validateDone',
  'context',
  'contextDone',
  'execute',
].toSorted();

describe('each hook is called once', () => {
  test.each([...WHOLE, ...FAILING])('for $name', async (request) => {
    const { hooks } = await seenOf(request);
    expect(hooks.slice(0, -4).toSorted()).toEqual(BEFORE);
    expect(hooks.slice(-4)).toEqual([
      'executeDone',
      'executionResult',
      'resultProcess',
      'response',
    ]);
  });

  test.each(STREAMED)('for $name', async (request) => {
    const { hooks, results } = await seenOf(request);
    expect(hooks.slice(0, BEFORE.length).toSorted()).toEqual(BEFORE);
    const rest = hooks.slice(BEFORE.length);
    const isInParts = rest.includes('end');
    expect(rest.filter((hook) => hook === 'next')).toHaveLength(isInParts ? results.length : 0);
    for (const hook of ['executeDone', 'executionResult', 'resultProcess', 'response']) {
      expect(rest.filter((called) => called === hook)).toHaveLength(1);
    }
  });
});

describe('hooks see true values', () => {
  test('of an answer: its document, variables, and result', async () => {
    const request = WHOLE.find(({ name }) => name === 'a connection')!;
    const observed = await seenOf(request);
    expect(observed.params).toMatchObject({ query: request.query, variables: request.variables });
    expect(observed.query).toBe(request.query);
    expect(print(observed.document!)).toBe(print(parse(request.query!)));
    expect(observed.parsed).toBe(observed.document);
    expect(observed).toMatchObject({ valid: true, operationType: 'query', status: 200 });
    expect(observed.variables).toMatchObject({ count: 7 });
    const { data } = JSON.parse((await got(hooked, request)).text) as { data: unknown };
    expect(observed.results).toEqual([{ data }]);
    expect(data).toMatchObject({ personsConnection: { totalCount: 137 } });
  });

  test('of an answer with errors: data and errors of GraphQL', async () => {
    const request = FAILING[1]!;
    const [result] = (await seenOf(request)).results;
    expect(result!.data).toMatchObject({
      persons: { items: [{ id: expect.any(String) }] },
      personsConnection: null,
    });
    expect(result!.errors).toHaveLength(1);
    expect(result!.errors![0]).toBeInstanceOf(GraphQLError);
    // A plugin that reports what is not meant for callers finds nothing.
    const { originalError } = result!.errors![0]!;
    expect(originalError === undefined || originalError instanceof GraphQLError).toBe(true);
    const { errors } = JSON.parse((await got(hooked, request)).text) as { errors: unknown };
    expect(JSON.parse(JSON.stringify(result!.errors))).toEqual(errors);
  });

  test.each(STREAMED)('of $name: every payload in the format of its caller', async (request) => {
    seen.length = 0;
    const { text } = await got(hooked, request);
    const [{ results }] = seen as [Seen];
    const parts = [...text.matchAll(/\r\n\r\n(\{.*\})\r\n---/g)].map(([, part]) => part!);
    const payloads = text.startsWith('{') ? [text] : parts;
    expect(results).toEqual(payloads.map((payload) => JSON.parse(payload)));
  });

  test('of a syntax error', async () => {
    const observed = await seenOf(REFUSED.find(({ name }) => name === 'a syntax error')!);
    expect(observed.parsed).toBeInstanceOf(GraphQLError);
    expect(observed).toMatchObject({ query: '{ persons(', status: 200 });
    expect(observed.hooks).not.toContain('execute');
  });

  test('of a document that is not valid: it, and its errors', async () => {
    const observed = await seenOf(REFUSED.find(({ name }) => name === 'an unknown field')!);
    expect(observed.valid).toBe(false);
    expect(observed.errorsOfValidation).toHaveLength(2);
    expect(observed.errorsOfValidation![0]).toBeInstanceOf(GraphQLError);
    expect(print(observed.document!)).toContain('nope');
    expect(observed.hooks).not.toContain('execute');
  });

  test.each(REFUSED)('of $name: the response', async (request) => {
    const observed = await seenOf(request);
    expect(observed.hooks.at(-1)).toBe('response');
    if (request.name.endsWith(' credential')) expect(observed.hooks).toEqual(['response']);
    expect(observed.status).toBe((await got(plain, request)).status);
    expect(observed.results).toEqual([]);
  });
});

test('hooks of a plugin that another plugin adds are called', async () => {
  const called: string[] = [];
  const added = everyHook((hook) => called.push(hook));
  const adding: Plugin = { onPluginInit: ({ addPlugin }) => addPlugin(added) };
  await using gateway = await startGatewayOverSandbox({}, { plugins: [adding] });
  expect((await gateway.ask('{ __typename }')).errors).toBeUndefined();
  expect(called).toContain('onExecute');
});

test.each([
  ['no plugin', []],
  ['a plugin', [everyHook()]],
])('what the service calls http is passed on, and sets no status, with %s', async (_, plugins) => {
  await using gateway = await startGatewayOverFake({}, { plugins });
  const http = { status: 418, headers: { 'set-cookie': 'a=b' } };
  const error = { message: 'No.', path: ['persons'], extensions: { code: 'NO', http } };
  gateway.upstream.answer(
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
