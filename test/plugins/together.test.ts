import { usePrometheus } from '@graphql-yoga/plugin-prometheus';
import { useResponseCache } from '@graphql-yoga/plugin-response-cache';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { countedHooks, type Seen } from './counted-hooks.ts';
import { FAILING, got, REFUSED, settings, STREAMED, WHOLE, type Got } from './requests.ts';

const seen: Seen[] = [];
let plain: TestGateway;
let full: TestGateway;
beforeAll(async () => {
  plain = await startGatewayOverSandbox({}, { config: settings });
  const plugins = [
    useResponseCache({ session: () => null }),
    usePrometheus({ registry: new Registry(), endpoint: false }),
    countedHooks(seen),
  ];
  full = await startGatewayOverSandbox({}, { config: settings, plugins });
});
afterAll(async () => {
  await plain[Symbol.asyncDispose]();
  await full[Symbol.asyncDispose]();
});

/** The cache changes the document in which errors have their locations, and adds validators to answers. */
function comparable({ status, text, headers }: Got) {
  const { etag: _, 'last-modified': __, ...others } = headers;
  return { status, text: text.replaceAll(/"locations":\[[^\]]*\],/g, ''), headers: others };
}

test.each([...WHOLE, ...FAILING, ...STREAMED, ...REFUSED])(
  'with several plugins together, $name is answered as without them',
  async (request) => {
    expect(comparable(await got(full, request))).toEqual(comparable(await got(plain, request)));
    expect(seen.at(-1)?.hooks).toContain('response');
  },
);
