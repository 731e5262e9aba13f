import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { useHive } from '@graphql-hive/yoga';
import { expect, onTestFinished, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { ALL, got, settings, STREAMED, WHOLE } from './requests.ts';

interface Report {
  readonly size: number;
  readonly map: Record<string, { operation: string; operationName?: string; fields: string[] }>;
  readonly operations: {
    operationMapKey: string;
    execution: { ok: boolean; errorsTotal: number };
  }[];
}

/** Takes usage reports, as Hive does. */
async function startCollector() {
  const reports: { report: Report; authorization: string | undefined }[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const { authorization } = request.headers;
    reports.push({ report: JSON.parse(await text(request)) as Report, authorization });
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"operations":{"accepted":1,"rejected":0}}');
  };
  const server = createServer((request, response) => void take(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return { reports, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/usage` };
}

test.each([false, true])(
  'Hive gets a report of usage, with metrics of fields: %s',
  async (fieldLevelMetricsEnabled) => {
    const { reports, url } = await startCollector();
    const hive = useHive({
      enabled: true,
      token: 'a-token',
      usage: { endpoint: url, fieldLevelMetricsEnabled },
      // Everything is sent when the gateway closes.
      agent: { sendInterval: 600_000, maxSize: 1_500 },
    });
    const plain = await startGatewayOverSandbox({}, { config: settings });
    onTestFinished(() => plain[Symbol.asyncDispose]());
    const gateway = await startGatewayOverSandbox({}, { config: settings, plugins: [hive] });
    for (const asked of ALL) {
      expect(await got(gateway, asked), asked.name).toEqual(await got(plain, asked));
    }
    await got(gateway, {
      name: '',
      query: 'query Bad { personsConnection(first: -1) { nodes { id } } }',
    });
    await got(gateway, {
      name: '',
      query: 'query Secret { person(id: "of-somebody") { firstName } }',
    });
    await gateway[Symbol.asyncDispose]();

    const { report, authorization } = reports[0]!;
    expect(authorization).toBe('Bearer a-token');
    const operations = Object.values(report.map);
    const page = operations.find(({ operationName }) => operationName === 'Page')!;
    expect(page.fields).toEqual(
      expect.arrayContaining([
        'Query.personsConnection',
        'PersonConnection.edges',
        'PersonEdge.node',
        'Person.firstName',
      ]),
    );
    expect(page.operation).toContain('personsConnection');
    expect(page.operation).not.toContain('__typename');
    const bad = operations.findIndex(({ operationName }) => operationName === 'Bad');
    const ofBad = report.operations.find(
      ({ operationMapKey }) => operationMapKey === Object.keys(report.map)[bad],
    );
    expect(ofBad).toMatchObject({ execution: { ok: false, errorsTotal: 1 } });
    expect(report.size).toBeGreaterThanOrEqual(WHOLE.length + STREAMED.length);
    expect(JSON.stringify(reports)).not.toContain('of-somebody');
  },
);
