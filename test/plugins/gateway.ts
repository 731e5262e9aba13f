import type { Plugin } from 'graphql-yoga';
import { onTestFinished } from 'vitest';
import { startFront, type Front } from '../support/gateway/front.ts';
import { post } from '../support/clients/post.ts';
import { entryFor } from '../support/gateway/api-key.ts';
import type { TestGateway, TestGatewayOptions } from '../support/gateway/gateway.ts';

export const READER = 'key-of-a-reader';
export const WRITER = 'key-of-a-writer';
export const ROUTER = 'key-of-a-router';
export const ORIGIN = 'https://app.example.test';
const apiKeys = [
  entryFor(READER, 'reader', 'read', 'drain'),
  entryFor(WRITER, 'writer', 'write'),
  entryFor(ROUTER, 'router', 'read', 'drain', 'router'),
];
export const CONFIG = {
  auth: { apiKeys, jwt: undefined },
  corsOrigins: [ORIGIN],
  maxAliases: 4,
  introspection: false,
} satisfies TestGatewayOptions['config'];

export const PAGE = '{ persons(first: 3) { items { id firstName } } }';
export const STREAM = '{ allPersons(limit: 120) @stream(label: "rows") { id firstName } }';

/** A gateway with these plugins, until the end of the test. */
export async function startWith(
  plugins: readonly Plugin[],
  options: TestGatewayOptions = {},
): Promise<Front> {
  const front = await startFront({}, { config: CONFIG, ...options, plugins });
  onTestFinished(() => front[Symbol.asyncDispose]());
  return front;
}

interface Sent {
  readonly accept?: string;
  readonly key?: string;
  readonly headers?: object;
  readonly variables?: object | undefined;
  readonly operationName?: string | undefined;
}

/** Sends an operation as a page of a listed origin does. */
export async function got(
  gateway: Pick<TestGateway, 'fetch'>,
  query: string,
  { accept = 'application/json', key = READER, headers = {}, ...others }: Sent = {},
) {
  const all = { accept, 'x-api-key': key, origin: ORIGIN, ...headers };
  const response = await gateway.fetch('/graphql', post({ query, ...others }, all));
  const { 'x-request-id': _, ...shown } = Object.fromEntries(response.headers);
  return { status: response.status, headers: shown, text: await response.text() };
}
