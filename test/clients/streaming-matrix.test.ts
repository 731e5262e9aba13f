import { createClient, fetchExchange } from '@urql/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { blockWith } from '../support/docs/documents.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { partsOf, putTogether, type Payload } from '../support/clients/multipart.ts';

interface Person {
  readonly id: string;
  readonly firstName: string | null;
}

type Data = { readonly allPersons?: readonly Person[] } | undefined;

const QUERY = '{ allPersons @stream(label: "all", initialCount: 3) { id firstName } }';

let gateway: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
let server: Awaited<ReturnType<typeof listen>>;

beforeAll(async () => {
  gateway = await startGatewayOverSandbox({ persons: 137 });
  server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await server.close();
  await gateway[Symbol.asyncDispose]();
});

test('urql streams 137 records, and shows more of them with each part', async () => {
  const shown: (readonly Person[])[] = [];
  await stream((data) => {
    if (data?.allPersons)
      shown.push(data.allPersons.map(({ id, firstName }) => ({ id, firstName })));
  });
  const lengths = shown.map(({ length }) => length);
  expect(lengths[0]).toBe(3);
  expect(lengths).toEqual(lengths.toSorted((left, right) => left - right));
  expect(new Set(lengths).size).toBeGreaterThan(3);
  expect(shown.at(-1)).toEqual(
    gateway.sandbox.persons.all().map(({ id, firstName }) => ({ id, firstName })),
  );
});

test('the command of docs/clients.md streams every record', async () => {
  const command = blockWith('docs/clients.md', 'curl -N');
  const headers = [...command.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, ...header]) => header);
  const response = await fetch(`${server.url}/graphql`, {
    method: 'POST',
    headers: headers as [string, string][],
    body: /-d '([^']+)'/.exec(command)![1]!,
  });
  const payloads: Payload[] = [];
  for await (const payload of partsOf(response)) payloads.push(payload);
  expect(putTogether(payloads)!['allPersons']).toHaveLength(137);
});

/** Streams the operation, and reports what the client shows after each part. */
function stream(show: (data: Data) => void): Promise<void> {
  const client = createClient({
    url: `${server.url}/graphql`,
    preferGetMethod: false,
    exchanges: [fetchExchange],
  });
  return new Promise((done, fail) => {
    client.query<Data>(QUERY, {}).subscribe(({ data, error, hasNext }) => {
      if (error) fail(error);
      show(data);
      if (!hasNext) done();
    });
  });
}
