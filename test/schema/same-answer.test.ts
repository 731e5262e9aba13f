import fc from 'fast-check';
import { parse, validate } from 'graphql';
import { askDirectly } from '../support/direct.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway.ts';
import { randomOperation } from '../support/random-operation.ts';
import { richScalar, richSdl, richUpstream } from '../support/rich-upstream.ts';

let rich: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
const { schema } = richUpstream();

beforeAll(async () => {
  rich = await startGatewayOverSandbox({ schema }, { snapshot: richSdl });
  await rich.ask('{ me { __typename } }');
});
afterAll(() => rich[Symbol.asyncDispose]());

test('whatever the upstream can be asked, the gateway answers the same', async () => {
  let valid = 0;
  await fc.assert(
    fc.asyncProperty(fc.gen(), async (g) => {
      const operation = randomOperation(schema, g, { scalar: richScalar });
      fc.pre(validate(schema, parse(operation.query)).length === 0);
      valid += 1;
      const [direct, through] = await Promise.all([
        askDirectly(rich, operation),
        rich.ask(inServedNames(operation.query), operation.variables),
      ]);
      expect(comparable(through), operation.query + JSON.stringify(operation.variables)).toEqual(
        comparable(direct),
      );
    }),
    {
      // Said with what failed, also when making it smaller takes its time.
      timeout: 20_000,
      interruptAfterTimeLimit: 100_000,
      numRuns: Number(process.env['RANDOM_RUNS'] ?? 250),
      maxSkipsPerRun: 400,
    },
  );
  expect(valid).toBeGreaterThan(100);
}, 120_000);

function inServedNames(query: string): string {
  return query.replaceAll(/\bon PageInfo\b/g, 'on UpstreamPageInfo');
}

/** Locations point into the document that was sent, and the order of errors is free (specification, 7.1.2). */
function comparable(answer: object) {
  const { data, errors = [] } = answer as {
    data?: unknown;
    errors?: { message: string; path?: unknown[]; extensions?: object }[];
  };
  const renamed = JSON.parse(
    JSON.stringify(data ?? null).replaceAll('"UpstreamPageInfo"', '"PageInfo"'),
  );
  const told = errors.map(({ message, path, extensions }) => ({
    message,
    path,
    extensions: extensions ?? {},
  }));
  return {
    data: renamed,
    errors: told.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
  };
}
