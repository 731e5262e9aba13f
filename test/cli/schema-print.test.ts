import { readFileSync } from 'node:fs';
import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import type { SnapshotSettings } from '../../src/schema/served/served-schema.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { runHere } from '../support/gateway/run-here.ts';

test('schema print prints only the schema that callers see', async () => {
  const { code, stdout, stderr } = await runHere(['schema', 'print']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const query = buildSchema(stdout).getQueryType()!.getFields();
  expect(Object.keys(query)).toEqual(
    expect.arrayContaining(['allPersons', 'persons', 'personsConnection']),
  );
});

/** A value of each setting on which the printed SDL depends, other than its default. */
const VARIED: Record<keyof Omit<SnapshotSettings, 'mutations'>, Record<string, string>> = {
  schemaPath: { RECRUITING_SCHEMA: 'schema/rich.graphql' },
  schemaPrefix: { SCHEMA_PREFIX: 'Ats' },
  connectionMax: { CONNECTION_MAX: '77' },
  drainMaxItems: { DRAIN_MAX_ITEMS: '777' },
  totalCountSeconds: { TOTAL_COUNT_SECONDS: '7' },
};

test.each(Object.values(VARIED))(
  'schema print --subgraph prints the SDL that is served with %j',
  async (env) => {
    const usual = await runHere(['schema', 'print', '--subgraph']);
    const printed = await runHere(['schema', 'print', '--subgraph'], env);
    const { recruitingUrl: _sandbox, ...config } = readConfig(env, () => '');
    const snapshot = readFileSync(config.schemaPath, 'utf8');
    await using world = await startGatewayOverSandbox({}, { config, snapshot, ownSchema: true });
    const { data } = await world.ask('{ _service { sdl } }');
    expect(data).toEqual({ _service: { sdl: printed.stdout } });
    expect(printed.stdout).not.toBe(usual.stdout);
  },
);
