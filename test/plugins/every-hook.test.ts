import { GraphQLError, Kind, print, parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { countedHooks, type Seen } from './counted-hooks.ts';
import {
  ALL,
  FAILING,
  got,
  REFUSED,
  send,
  settings,
  STREAMED,
  WHOLE,
  type Asked,
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
async function seenOf(asked: Asked): Promise<Seen> {
  seen.length = 0;
  await (await send(hooked, asked)).text();
  expect(seen).toHaveLength(1);
  return seen[0]!;
}

test.each(ALL)(
  'with a plugin that has every hook, $name is answered as without it',
  async (asked) => {
    expect(await got(hooked, asked)).toEqual(await got(plain, asked));
  },
);

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
  test.each([...WHOLE, ...FAILING])('for $name', async (asked) => {
    const { hooks } = await seenOf(asked);
    expect(hooks.slice(0, -4).toSorted()).toEqual(BEFORE);
    expect(hooks.slice(-4)).toEqual([
      'executeDone',
      'executionResult',
      'resultProcess',
      'response',
    ]);
  });

  test.each(STREAMED)('for $name', async (asked) => {
    const { hooks, results } = await seenOf(asked);
    expect(hooks.slice(0, BEFORE.length).toSorted()).toEqual(BEFORE);
    const rest = hooks.slice(BEFORE.length);
    const isInParts = rest.includes('end');
    expect(rest.filter((hook) => hook === 'next')).toHaveLength(isInParts ? results.length : 0);
    for (const hook of ['executeDone', 'executionResult', 'resultProcess', 'response']) {
      expect(rest.filter((one) => one === hook)).toHaveLength(1);
    }
  });
});

describe('hooks see true values', () => {
  test('of an answer: its document, variables, and result', async () => {
    const asked = WHOLE.find(({ name }) => name === 'a connection')!;
    const one = await seenOf(asked);
    expect(one.params).toMatchObject({ query: asked.query, variables: asked.variables });
    expect(one.query).toBe(asked.query);
    expect(print(one.document!)).toBe(print(parse(asked.query!)));
    expect(one.parsed).toBe(one.document);
    expect(one).toMatchObject({ valid: true, operationType: 'query', status: 200 });
    expect(one.variables).toMatchObject({ count: 7 });
    const { data } = JSON.parse((await got(hooked, asked)).text) as { data: unknown };
    expect(one.results).toEqual([{ data }]);
    expect(data).toMatchObject({ personsConnection: { totalCount: 137 } });
  });

  test('of one of two operations: its name, and the whole document', async () => {
    const one = await seenOf(WHOLE.find(({ operationName }) => operationName === 'Two')!);
    expect(one).toMatchObject({ operationName: 'Two', variables: { with: false } });
    expect(one.document!.definitions.map(({ kind }) => kind)).toEqual([
      Kind.OPERATION_DEFINITION,
      Kind.OPERATION_DEFINITION,
      Kind.FRAGMENT_DEFINITION,
    ]);
  });

  test('of an answer with errors: data and errors of GraphQL', async () => {
    const asked = FAILING[1]!;
    const [result] = (await seenOf(asked)).results;
    expect(result!.data).toMatchObject({
      persons: { items: [{ id: expect.any(String) }] },
      personsConnection: null,
    });
    expect(result!.errors).toHaveLength(1);
    expect(result!.errors![0]).toBeInstanceOf(GraphQLError);
    const { errors } = JSON.parse((await got(hooked, asked)).text) as { errors: unknown };
    expect(JSON.parse(JSON.stringify(result!.errors))).toEqual(errors);
  });

  test.each(STREAMED)('of $name: every payload in the format of its caller', async (asked) => {
    const { results } = await seenOf(asked);
    const { text } = await got(plain, asked);
    const payloads = [...text.matchAll(/\r\n\r\n(\{.*\})\r\n---/g)].map(([, json]) =>
      JSON.parse(json!),
    );
    expect(results).toEqual(payloads);
  });

  test('of a syntax error', async () => {
    const one = await seenOf(REFUSED.find(({ name }) => name === 'a syntax error')!);
    expect(one.parsed).toBeInstanceOf(GraphQLError);
    expect(one).toMatchObject({ query: '{ persons(', status: 200 });
    expect(one.hooks).not.toContain('execute');
  });

  test('of a document that is not valid: it, and its errors', async () => {
    const one = await seenOf(REFUSED.find(({ name }) => name === 'an unknown field')!);
    expect(one.valid).toBe(false);
    expect(one.errorsOfValidation).toHaveLength(2);
    expect(one.errorsOfValidation![0]).toBeInstanceOf(GraphQLError);
    expect(print(one.document!)).toContain('nope');
    expect(one.hooks).not.toContain('execute');
  });

  test.each(REFUSED)('of $name: the response', async (asked) => {
    const one = await seenOf(asked);
    expect(one.hooks.at(-1)).toBe('response');
    expect(one.status).toBe((await got(plain, asked)).status);
    expect(one.results).toEqual([]);
  });
});
