import { once } from 'node:events';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import type { Reply } from '../support/imitations/scripted.ts';
import { post, type Body } from './front.ts';

/** No two places of it are equal. */
const LONG = Array.from({ length: 40_000 }, (_, at) => at).join(' ');
const SIZES = [1, 1, 3_000, 1, 0, 700, 1_500, 2, 70_000, 5, 20_000, 999, 66_000, 1];
const QUERY = 'query ($after: String) { persons(after: $after) { items { firstName } } }';

test('a body in parts of any sizes is read as it was sent, and so is an answer of the service', async () => {
  await using gateway = await startGatewayOverFake();
  const server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const { upstream } = gateway;
  upstream.answer(inParts);
  const variables = { after: LONG };
  const request = () => {
    const body = Readable.toWeb(
      Readable.from(partsOf(JSON.stringify({ query: QUERY, variables }))),
    );
    return { ...post(''), body: body as ReadableStream, duplex: 'half' };
  };
  for (const answer of [
    fetch(`${server.url}/graphql`, request()),
    gateway.fetch('/graphql', request()),
  ]) {
    const { data } = (await (await answer).json()) as Body;
    expect(data).toEqual({ persons: { items: [{ firstName: LONG }] } });
    expect(JSON.parse(upstream.received.at(-1)!.body)).toMatchObject({ variables });
  }
});

test.each<[string, () => ReadableStream]>([
  ['fails', () => Readable.toWeb(Readable.from(failing())) as ReadableStream],
  ['gives text', () => Readable.toWeb(Readable.from(['{', '}'])) as ReadableStream],
  ['gives numbers', () => Readable.toWeb(Readable.from([1, 2])) as ReadableStream],
])('a body through fetch whose stream %s is refused, and the next one is read', async (_, body) => {
  await using gateway = await startGatewayOverFake();
  const ask = (request: object) =>
    gateway
      .fetch('/graphql', { ...post({ query: '{ __typename }' }), ...request })
      .then((response) => response.json());
  expect(await ask({ body: body(), duplex: 'half' })).toMatchObject({
    errors: [{ extensions: { code: 'BAD_USER_INPUT' } }],
  });
  expect(await ask({})).toEqual({ data: { __typename: 'Query' } });
});

async function* failing() {
  yield Buffer.from('{');
  await Promise.resolve();
  throw new Error('The stream failed.');
}

const inParts: Reply = async (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const answer = JSON.stringify({ data: { persons: { items: [{ firstName: LONG }] } } });
  for (const part of partsOf(answer)) if (!response.write(part)) await once(response, 'drain');
  response.end();
};

function* partsOf(text: string): Generator<Buffer> {
  const bytes = Buffer.from(text);
  let from = 0;
  for (const size of SIZES) yield bytes.subarray(from, (from += size));
  for (; from < bytes.length; from += 7) yield bytes.subarray(from, from + 7);
}
