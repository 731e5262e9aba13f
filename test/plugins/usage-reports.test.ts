import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { Report, Trace } from '@apollo/usage-reporting-protobuf';
import type { Plugin } from 'graphql-yoga';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { blockWith } from '../support/docs/documents.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ALL, FAILING, got, settings, STREAMED, WHOLE, type TestRequest } from './requests.ts';

let folder: ReturnType<typeof temporaryFolder>;
let plain: TestGateway;
beforeAll(async () => {
  folder = temporaryFolder();
  symlinkSync(join(process.cwd(), 'node_modules'), folder.file('node_modules'));
  plain = await startGatewayOverSandbox({}, { config: settings });
});
afterAll(async () => {
  await plain[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

test.each([false, true])(
  'the Hive example of docs/extending.md reports fields and clients, with metrics of fields: %s',
  async (fieldLevelMetricsEnabled) => {
    const registry = await startRegistry();
    vi.stubEnv('HIVE_TOKEN', 'hvo1/a-token');
    const plugins = await pluginsOf('useHive({', (block) =>
      block
        .replace('usage: {', `usage: { endpoint: '${registry.url}', fieldLevelMetricsEnabled,`)
        .replaceAll('fieldLevelMetricsEnabled', `$&: ${fieldLevelMetricsEnabled}`)
        // Everything is sent when the gateway closes.
        .replace('usage: {', 'agent: { sendInterval: 600_000, maxSize: 1_500 }, $&'),
    );
    await answersAsWithout(plugins, {
      'graphql-client-name': 'web',
      'graphql-client-version': '1',
    });

    const [{ headers, body }] = registry.reports as [Sent];
    expect(headers.authorization).toBe('Bearer hvo1/a-token');
    const report = JSON.parse(body.toString()) as HiveReport;
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
    expect(ofBad).toMatchObject({
      execution: { ok: false, errorsTotal: 1 },
      metadata: { client: { name: 'web', version: '1' } },
    });
    expect(report.size).toBeGreaterThanOrEqual(WHOLE.length + STREAMED.length);
    expect(body.toString()).not.toContain('of-somebody');
  },
);

test('the Apollo example of docs/extending.md reports fields, clients and durations', async () => {
  const registry = await startRegistry();
  vi.stubEnv('APOLLO_KEY', 'a-key');
  const plugins = await pluginsOf('useApolloUsageReport({', (block) =>
    block.replace('useApolloUsageReport({', `$& endpoint: '${registry.url}',`),
  );
  await answersAsWithout(plugins, {
    'apollographql-client-name': 'web',
    'apollographql-client-version': '1',
  });

  expect(registry.reports[0]!.headers['x-api-key']).toBe('a-key');
  const bodies = registry.reports.map(({ body }) => gunzipSync(body));
  const reports = bodies.map((bytes) => Report.decode(bytes));
  expect(reports[0]!.header?.graphRef).toBe('recruiting@production');
  const operations = reports.flatMap(({ tracesPerQuery }) => Object.entries(tracesPerQuery));
  const [, page] = operations.find(([key]) => key.startsWith('# Page'))!;
  expect(page.referencedFieldsByType!['PersonEdge']?.fieldNames).toEqual(['cursor', 'node']);
  expect(operations.map(([key]) => key)).toContainEqual(expect.stringMatching(/^# Bad\n/));
  const traces = operations.flatMap(([, { trace }]) => trace ?? []) as Trace[];
  expect(traces.length).toBeGreaterThanOrEqual(WHOLE.length);
  for (const trace of traces) {
    expect(trace).toMatchObject({ clientName: 'web', clientVersion: '1' });
    expect(trace.durationNs).toBeGreaterThan(0);
  }
  expect(Buffer.concat(bodies).toString('latin1')).not.toContain('of-somebody');
});

test('the traces of docs/extending.md are in the answers of a router that asks for them', async () => {
  const plugins = await pluginsOf('useApolloInlineTrace({', (block) => block);
  await answersAsWithout(plugins, {});
  await using gateway = await startGatewayOverSandbox({}, { config: settings, plugins });
  const headers = { 'apollo-federation-include-trace': 'ftv1' };
  const request = withHeaders(
    ALL.find(({ name }) => name === 'references of a router')!,
    headers,
  );
  const { text } = await got(gateway, request);
  const answer = JSON.parse(text) as { data: object; extensions: { ftv1: string } };
  expect(answer.data).toEqual({ _entities: [{ id: expect.any(String) }] });
  const trace = Trace.decode(Buffer.from(answer.extensions.ftv1, 'base64'));
  expect(trace.durationNs).toBeGreaterThan(0);
  for (const failing of FAILING) {
    const expected = JSON.parse((await got(plain, failing)).text) as object;
    const traced = JSON.parse((await got(gateway, withHeaders(failing, headers))).text) as object;
    expect(traced, failing.name).toMatchObject(expected);
  }
});

interface HiveReport {
  readonly size: number;
  readonly map: Record<string, { operation: string; operationName?: string; fields: string[] }>;
  readonly operations: {
    operationMapKey: string;
    execution: { ok: boolean; errorsTotal: number };
    metadata?: { client?: object };
  }[];
}

interface Sent {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Takes reports, as Hive and Apollo do. */
async function startRegistry() {
  const reports: Sent[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    reports.push({ headers: request.headers, body: await buffer(request) });
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"operations":{"accepted":1,"rejected":0}}');
  };
  const server = createServer((request, response) => void take(request, response));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => new Promise<void>((closed) => void server.close(() => closed())));
  return { reports, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/usage` };
}

let files = 0;

async function pluginsOf(part: string, edit: (block: string) => string): Promise<Plugin[]> {
  // Node loads each file once.
  const file = folder.file(`${(files += 1)}.config.ts`);
  writeFileSync(file, edit(blockWith('docs/extending.md', part)));
  const { default: config } = (await import(file)) as { default: { plugins: Plugin[] } };
  return config.plugins;
}

const SOME: readonly TestRequest[] = [
  { name: 'an error', query: 'query Bad { personsConnection(first: -1) { nodes { id } } }' },
  { name: 'a value', query: 'query Secret { person(id: "of-somebody") { firstName } }' },
];

/** Asks everything of a gateway with these plugins, and closes it, so that all reports are sent. */
async function answersAsWithout(plugins: Plugin[], headers: Record<string, string>) {
  await using gateway = await startGatewayOverSandbox({}, { config: settings, plugins });
  for (const request of [...ALL, ...SOME].map((each) => withHeaders(each, headers))) {
    expect(await got(gateway, request), request.name).toEqual(await got(plain, request));
  }
}

function withHeaders(request: TestRequest, headers: Record<string, string>): TestRequest {
  const { init } = request;
  const all = { ...(init?.headers as Record<string, string>), ...headers };
  return { ...request, init: { ...init, headers: all } };
}
