import { propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  CompositePropagator,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, honest, json } from '../support/imitations/scripted.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

const exporter = new InMemorySpanExporter();
let gateway: GatewayOverFake;
beforeAll(async () => {
  // What an operator's SDK does.
  const spanProcessors = [new SimpleSpanProcessor(exporter)];
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
  const propagators = [new W3CTraceContextPropagator(), new W3CBaggagePropagator()];
  propagation.setGlobalPropagator(new CompositePropagator({ propagators }));
  gateway = await startGatewayOverFake({ persons: 120 });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  trace.disable();
  propagation.disable();
});
beforeEach(({ task }) => {
  if (!task.name.startsWith('an exchange')) exporter.reset();
  gateway.upstream.answer(honest);
});

test('an exchange of tokens has its own span, which contains no token', () => {
  const [exchange] = exporter.getFinishedSpans();
  expect(exchange).toMatchObject({
    name: 'token exchange',
    kind: SpanKind.CLIENT,
    attributes: { 'http.request.method': 'POST', 'server.address': '127.0.0.1' },
    status: { code: SpanStatusCode.UNSET },
  });
  expect(exchange).not.toHaveProperty('parentSpanContext.spanId');
});

test('the span of a query is below that of its caller, and the span of its upstream request is below that of the query', async () => {
  await send('{ persons(first: 1) { items { firstName } } }', {
    traceparent: `00-${TRACE}-${PARENT}-01`,
    tracestate: 'vendor=1',
  });
  const [upstream, request] = finished(2);
  expect(request).toMatchObject({
    name: 'query',
    kind: SpanKind.SERVER,
    parentSpanContext: { traceId: TRACE, spanId: PARENT },
    status: { code: SpanStatusCode.UNSET },
  });
  expect(request!.attributes).toEqual({
    'http.request.method': 'POST',
    'http.response.status_code': 200,
    'graphql.operation.type': 'query',
  });
  const { port } = new URL(gateway.upstream.url);
  expect(upstream).toMatchObject({ name: 'POST', kind: SpanKind.CLIENT });
  expect(upstream!.parentSpanContext?.spanId).toBe(idOf(request));
  expect(upstream!.attributes).toEqual({
    'http.request.method': 'POST',
    'http.response.status_code': 200,
    'server.address': '127.0.0.1',
    'server.port': Number(port),
  });
});

test('the trace context is sent to the service, and nothing else that callers send with it', async () => {
  await send('{ persons(first: 2) { items { id } } }', {
    traceparent: `00-${TRACE}-${PARENT}-01`,
    tracestate: 'vendor=1',
    baggage: 'user=max',
    b3: '0',
  });
  const { headers } = gateway.upstream.received.at(-1)!;
  expect(headers['traceparent']).toBe(`00-${TRACE}-${idOf(finished(2)[0])}-01`);
  expect(headers['tracestate']).toBe('vendor=1');
  expect(headers).not.toHaveProperty('baggage');
  expect(headers).not.toHaveProperty('b3');
});

test.each([
  'nonsense',
  `00-${'0'.repeat(32)}-${PARENT}-01`,
  `ff-${TRACE}-${PARENT}-01`,
  `00-${TRACE}-${PARENT}-01, 00-${TRACE}-${PARENT}-01`,
])('the traceparent %j is ignored: a new trace begins', async (traceparent) => {
  await send('{ __typename }', { traceparent });
  const [request] = finished(1);
  expect(request!.parentSpanContext).toBeUndefined();
  expect(request!.spanContext().traceId).not.toBe(TRACE);
});

test('a caller who is not sampled gets no span', async () => {
  await send('{ persons(first: 3) { items { id } } }', {
    traceparent: `00-${TRACE}-${PARENT}-00`,
  });
  finished(0);
  const { headers } = gateway.upstream.received.at(-1)!;
  expect(headers['traceparent']).toMatch(new RegExp(`^00-${TRACE}-[\\da-f]{16}-00$`));
});

test('a drain is a span, and all its pages are below it, whichever caller waits for them', async () => {
  const gate = Promise.withResolvers<void>();
  const arrived = gateway.upstream.received.length;
  gateway.upstream.answer(after(gate.promise, honest));
  const first = send('{ allPersons { id } }');
  await gateway.upstream.arrived(arrived + 1);
  const second = send('{ allPersons { id } }');
  gate.resolve();
  await Promise.all([first, second]);
  const spans = exporter.getFinishedSpans();
  const [drain] = spans.filter(({ name }) => name === 'drain');
  const pages = spans.filter(({ name }) => name === 'POST');
  expect(drain).toMatchObject({
    kind: SpanKind.INTERNAL,
    attributes: { 'recruiting.list': 'Query.persons' },
  });
  expect(pages).toHaveLength(3);
  expect(new Set(pages.map((page) => page.parentSpanContext?.spanId))).toEqual(
    new Set([idOf(drain)]),
  );
  const requests = spans.filter(({ name }) => name === 'query');
  expect(requests.map(idOf)).toContain(drain!.parentSpanContext?.spanId);
  expect(requests).toHaveLength(2);
});

test('the span of a failed request has the id by which the service finds it', async () => {
  gateway.upstream.answer(json({}, 400, { 'x-request-id': 'svc-1' }));
  await send('{ persons(first: 5) { items { id } } }');
  const [upstream] = finished(2);
  expect(upstream!.attributes).toMatchObject({ 'http.response.header.x-request-id': ['svc-1'] });
});

test('an error is reported by its code, and a mistake of the caller is not a failed span', async () => {
  gateway.upstream.answer(json({}, 400));
  await send('{ persons(first: 4) { items { id } } }');
  const [upstream, request] = finished(2);
  for (const span of [upstream, request]) {
    expect(span).toMatchObject({
      attributes: { 'error.type': 'UPSTREAM_BAD_RESPONSE' },
      status: { code: SpanStatusCode.ERROR },
    });
  }
  exporter.reset();
  await send('{ nothing }');
  expect(finished(1)[0]).toMatchObject({
    name: 'POST',
    attributes: { 'error.type': 'BAD_USER_INPUT', 'http.response.status_code': 200 },
    status: { code: SpanStatusCode.UNSET },
  });
});

test.each([
  ['PERSISTED_QUERY_NOT_SUPPORTED', undefined],
  ['PERSISTED_QUERY_NOT_FOUND', { trusted: '{ __typename }' }],
])(
  'a request with only the hash of its text is not a failed span: %s makes the client send the text',
  async (code, trustedDocuments) => {
    await using other = await startGatewayOverFake({}, { trustedDocuments });
    exporter.reset();
    const persistedQuery = { version: 1, sha256Hash: '0'.repeat(64) };
    await other.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ extensions: { persistedQuery } }),
    });
    expect(finished(1)[0]).toMatchObject({
      attributes: { 'error.type': code },
      status: { code: SpanStatusCode.UNSET },
    });
  },
);

test('spans contain neither documents, variables nor names of callers, and probes have no span', async () => {
  await gateway.fetch('/health');
  finished(0);
  await send('query OfMax($max: Int) { max: persons(first: $max) { items { firstName } } }');
  const recorded = finished(2).map(({ name, attributes, events, links }) => [
    name,
    attributes,
    events,
    links,
  ]);
  expect(JSON.stringify(recorded)).not.toMatch(/max|firstName/i);
});

async function send(query: string, headers: Record<string, string> = {}): Promise<void> {
  await gateway.ask(query, { max: 3 }, { headers });
}

/** In the order in which they ended. */
function finished(count: number): ReadableSpan[] {
  const spans = exporter.getFinishedSpans();
  expect(spans).toHaveLength(count);
  return spans;
}

function idOf(span: ReadableSpan | undefined): string {
  return span!.spanContext().spanId;
}
