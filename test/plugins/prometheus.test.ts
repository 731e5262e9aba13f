import { usePrometheus } from '@graphql-yoga/plugin-prometheus';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { got, settings, type TestRequest } from './requests.ts';

const registry = new Registry();
let counted: TestGateway;
beforeAll(async () => {
  const plugins = [usePrometheus({ registry, endpoint: false })];
  counted = await startGatewayOverSandbox({}, { config: settings, plugins });
});
afterAll(() => counted[Symbol.asyncDispose]());

const STREAM: TestRequest = {
  name: '',
  query: 'query Streamed { allPersons(limit: 60) @stream { id } }',
  accept: 'multipart/mixed',
};

test.each([
  ['an answer', 'Named', { name: '', query: 'query Named { persons(first: 1) { items { id } } }' }],
  ['a stream', 'Streamed', STREAM],
])('Prometheus counts %s', async (_, operationName, request) => {
  await got(counted, request);
  await got(counted, request);
  const labels = { operationName, operationType: 'query' };
  expect(await valueOf('graphql_envelop_request', labels)).toBe(2);
  expect(await valueOf('graphql_envelop_phase_execute_count', labels)).toBe(2);
  expect(await valueOf('graphql_envelop_phase_validate_count', labels)).toBe(2);
  expect(await valueOf('graphql_yoga_http_duration_count', { ...labels, statusCode: 200 })).toBe(2);
});

/** The sum of all values with these labels. */
async function valueOf(name: string, labels: Record<string, unknown>): Promise<number> {
  const metrics = await registry.getMetricsAsJSON();
  const values = metrics.flatMap((metric) => metric.values as readonly Value[]);
  const matching = values.filter(
    (value) =>
      (value.metricName ??
        metrics.find(({ values: samples }) => (samples as unknown[]).includes(value))!.name) ===
        name &&
      Object.entries(labels).every(([label, expected]) => value.labels[label] === expected),
  );
  return matching.reduce((sum, { value }) => sum + value, 0);
}

interface Value {
  readonly value: number;
  readonly metricName?: string;
  readonly labels: Record<string, unknown>;
}
