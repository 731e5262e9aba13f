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

test.each<[accept: string | null, whole: string | undefined, streamed?: string]>([
  [null, JSON_],
  ['', JSON_],
  ['*/*', JSON_],
  ['application/json', JSON_],
  ['application/json, application/graphql-response+json', JSON_],
  ['application/graphql-response+json;q=0.9, application/json', JSON_],
  ['application/graphql-response+json, application/json;q=0.9', GRAPHQL],
  ['application/json;q=0, */*', GRAPHQL],
  ['application/json;q=0.5, */*', GRAPHQL],
  // JSON is preferred, or the format of the parts is not known.
  ['application/json, multipart/mixed;q=0.5', JSON_],
  ['application/json, multipart/mixed;incrementalSpec=v0.2', JSON_],
  ['multipart/mixed;incrementalSpec=v0.2, application/json;q=0.9', JSON_],
  ['multipart/mixed', JSON_, PARTS],
  ['multipart/mixed;deferSpec=20220824, application/json', JSON_, PARTS],
  ['Multipart/Mixed; deferspec="20220824"', JSON_, PARTS],
  ['application/json, multipart/mixed', JSON_, PARTS],
  ['multipart/mixed;deferSpec=20230101, multipart/mixed;deferSpec=20220824', JSON_, PARTS],
  ['multipart/mixed;q=0.5, application/json;q=0.4', JSON_, PARTS],
  // Nothing of this can be sent.
  ['multipart/mixed;deferSpec=20230101', undefined],
  ['multipart/mixed;q=0', undefined],
  ['application/json;q=0', undefined],
  ['image/*, text/event-stream;q=0.5', undefined],
])(
  'a caller that accepts %j gets %s, and a stream as %s',
  async (accept, whole, streamed = whole) => {
    for (const [query, type] of [
      ['{ __typename }', whole],
      ['{ allPersons @stream { id } }', streamed],
    ] as const) {
      const response = await ask(gateway, query, {}, accept);
      const text = await response.text();
      const expected = type === undefined ? [406, JSON_] : [200, type];
      expect([response.status, response.headers.get('content-type')]).toEqual(expected);
      if (type === undefined) expect(text).toContain('multipart/mixed;deferSpec=20220824');
    }
  },
);
