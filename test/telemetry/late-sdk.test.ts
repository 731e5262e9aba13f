import { propagation, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

let gateway: GatewayOverFake;
beforeEach(async () => {
  gateway = await startGatewayOverFake({ persons: 120 });
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
  trace.disable();
  propagation.disable();
});

test('without an SDK, no trace context is sent to the service', async () => {
  await ask('{ persons(first: 1) { items { id } } }');
  expect(sent()).not.toHaveProperty('traceparent');
  expect(sent()).toHaveProperty('x-request-id');
});

test('an SDK that is registered after the start gets the spans of later requests', async () => {
  await ask('{ persons(first: 1) { items { id } } }');
  const exporter = new InMemorySpanExporter();
  const spanProcessors = [new SimpleSpanProcessor(exporter)];
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());

  await ask('{ persons(first: 2) { items { id } } }');
  expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual(['POST', 'query']);
  expect(sent()['traceparent']).toContain(PARENT.slice(0, 36));
});

test('a propagator without an SDK passes the caller’s trace context on', async () => {
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  await ask('{ persons(first: 1) { items { id } } }');
  expect(sent()).toMatchObject({ traceparent: PARENT });
});

async function ask(query: string): Promise<void> {
  await gateway.ask(query, {}, { headers: { traceparent: PARENT } });
}

/** The headers of the last upstream request. */
function sent() {
  return gateway.upstream.received.at(-1)!.headers;
}
