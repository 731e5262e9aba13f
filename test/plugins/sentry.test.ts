import { useSentry } from '@envelop/sentry';
import type { Plugin } from 'graphql-yoga';
import * as Sentry from '@sentry/node';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openSqliteStore } from '../../src/tokens/store/sqlite/sqlite-store.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { honest, refusal } from '../support/imitations/scripted.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { ALL, FAILING, got, settings } from './requests.ts';

/** A store of another service is unexpected: the gateway has looked at the start. */
const ELSEWHERE = 'https://internal.example.test';

const reported: string[] = [];
let plain: TestGateway;
let watched: TestGateway;
let failing: GatewayOverFake;
let isBroken = false;
beforeAll(async () => {
  Sentry.init({
    dsn: 'https://key@sentry.example.test/1',
    defaultIntegrations: false,
    // Other tests have an OpenTelemetry of their own.
    skipOpenTelemetrySetup: true,
    transport: (options) =>
      Sentry.createTransport(options, async ({ body }) => {
        reported.push(String(body));
        return { statusCode: 200 };
      }),
  });
  plain = await startGatewayOverSandbox({}, { config: settings });
  const plugins = [useSentry() as Plugin];
  watched = await startGatewayOverSandbox({}, { config: settings, plugins });
  const store = openSqliteStore(':memory:');
  failing = await startGatewayOverFake(
    { persons: 137 },
    {
      plugins,
      store: {
        ...store,
        read: async () => {
          const stored = await store.read();
          return stored && isBroken ? { ...stored, baseUrl: ELSEWHERE } : stored;
        },
      },
    },
  );
});
afterAll(async () => {
  await Sentry.close();
  await plain[Symbol.asyncDispose]();
  await watched[Symbol.asyncDispose]();
  await failing[Symbol.asyncDispose]();
});
beforeEach(() => {
  reported.length = 0;
  isBroken = false;
  failing.upstream.answer(honest);
});

test.each(ALL)('with Sentry, $name is answered as without it', async (request) => {
  expect(await got(watched, request)).toEqual(await got(plain, request));
});

test.each(FAILING)('the error of $name is for its caller: Sentry gets none', async (request) => {
  await got(watched, request);
  await Sentry.flush();
  expect(reported).toEqual([]);
});

test('Sentry gets an unexpected error as it was thrown, and the caller an id', async () => {
  failing.upstream.answer(refusal('expired'));
  isBroken = true;
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
  await Sentry.flush();
  expect(reported).toHaveLength(1);
  expect(reported[0]).toContain('internal.example.test');
  expect(reported[0]).toContain('"operationName":"Names"');
  const { id } = errors[0]!.extensions;
  expect(failing.logged).toContainEqual(
    expect.objectContaining({
      errorId: id,
      err: expect.objectContaining({ message: expect.stringContaining(ELSEWHERE) }),
    }),
  );
});
