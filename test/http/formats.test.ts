import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../support/clients/multipart.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';

const JSON_ = 'application/json; charset=utf-8';
const GRAPHQL = 'application/graphql-response+json; charset=utf-8';
const PARTS = 'multipart/mixed; boundary="-"; deferSpec=20220824';

let gateway: Awaited<ReturnType<typeof startGatewayOverService>>;
beforeAll(async () => {
  gateway = await startGatewayOverService();
});
afterAll(() => gateway[Symbol.asyncDispose]());

test.each<[accept: string | null, whole: string, streamed?: string]>([
  [null, JSON_],
  ['', JSON_],
  ['*/*', JSON_],
  // It names nothing that can be sent.
  ['image/*, text/event-stream;q=0.5', JSON_],
  ['application/json', JSON_],
  ['application/json, application/graphql-response+json', JSON_],
  ['application/graphql-response+json, application/json;q=0.9', GRAPHQL],
  ['application/json, multipart/mixed;incrementalSpec=v0.2', JSON_],
  ['multipart/mixed;deferSpec=20230101', JSON_],
  ['multipart/mixed', JSON_, PARTS],
  ['multipart/mixed;deferSpec=20220824, application/json', JSON_, PARTS],
  ['Multipart/Mixed; deferspec="20220824", application/graphql-response+json', GRAPHQL, PARTS],
  ['application/json, multipart/mixed', JSON_, PARTS],
  ['multipart/mixed;deferSpec=20230101, multipart/mixed;deferSpec=20220824', JSON_, PARTS],
])(
  'a caller that accepts %j gets %s, and a stream as %s',
  async (accept, whole, streamed = whole) => {
    for (const [query, type] of [
      ['{ __typename }', whole],
      ['{ allPersons @stream { id } }', streamed],
      ['{ persons @stream { items @stream { id } } }', whole],
      ['{ personsConnection @stream { edges @stream { cursor } } }', whole],
    ] as const) {
      const response = await ask(gateway, query, {}, accept);
      await response.text();
      expect([response.status, response.headers.get('content-type')]).toEqual([200, type]);
    }
  },
);
