import { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { honest, refusal } from '../support/imitations/scripted.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { breakableStore } from '../support/gateway/stores.ts';
import { FAILING, got, settings } from './requests.ts';

const ELSEWHERE = 'https://internal.example.test';

const reported: unknown[] = [];
/** Reports errors that are not meant for callers, as trackers of errors do: those with an `originalError`. */
const tracker: Plugin = {
  onExecute: () => ({
    onExecuteDone({ result }) {
      const { errors = [] } = result as { errors?: readonly GraphQLError[] };
      for (const { originalError } of errors) {
        if (originalError && !(originalError instanceof GraphQLError)) reported.push(originalError);
      }
    },
  }),
};

let watched: TestGateway;
let failing: GatewayOverFake;
const { store, broken } = breakableStore(ELSEWHERE);
beforeAll(async () => {
  watched = await startGatewayOverSandbox({}, { config: settings, plugins: [tracker] });
  failing = await startGatewayOverFake({ persons: 137 }, { plugins: [tracker], store });
});
afterAll(async () => {
  broken.is = false;
  await watched[Symbol.asyncDispose]();
  await failing[Symbol.asyncDispose]();
});
beforeEach(() => {
  reported.length = 0;
  broken.is = false;
  failing.upstream.answer(honest);
});

test.each(FAILING)(
  'the error of $name is for its caller: a plugin reports none',
  async (request) => {
    const { text } = await got(watched, request);
    expect(JSON.parse(text)).toHaveProperty('errors');
    expect(reported).toEqual([]);
  },
);

test('a plugin gets an unexpected error as it was thrown, and the caller an id', async () => {
  failing.upstream.answer(refusal('expired'));
  broken.is = true;
  const { status, text } = await got(failing, {
    name: '',
    query: 'query Names { persons(first: 1) { items { id } } }',
  });
  expect(status).toBe(200);
  const { errors } = JSON.parse(text) as { errors: { extensions: Record<string, unknown> }[] };
  expect(errors).toMatchObject([
    { path: ['persons'], extensions: { code: 'INTERNAL_SERVER_ERROR' } },
  ]);
  expect(text).not.toContain('internal.example.test');
  expect(reported).toEqual([
    expect.objectContaining({ message: expect.stringContaining(ELSEWHERE) }),
  ]);
  const { id } = errors[0]!.extensions;
  expect(failing.logged).toContainEqual(
    expect.objectContaining({
      errorId: id,
      err: expect.objectContaining({ message: expect.stringContaining(ELSEWHERE) }),
    }),
  );
});
