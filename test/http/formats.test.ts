import { expect, test } from 'vitest';
import { accepted } from '../../src/http/formats.ts';
import { ask, gathered, partsOf } from '../support/clients/multipart.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

const JSON_ = 'application/json; charset=utf-8';
const GRAPHQL = 'application/graphql-response+json; charset=utf-8';
const PARTS = 'multipart/mixed; boundary="-"; deferSpec=20220824';

test.each<[accept: string | undefined, json: string | undefined, parts: boolean]>([
  [undefined, JSON_, false],
  ['', JSON_, false],
  ['*/*', JSON_, false],
  ['application/json', JSON_, false],
  ['application/json, application/graphql-response+json', JSON_, false],
  ['application/graphql-response+json;q=0.9, application/json', JSON_, false],
  ['application/graphql-response+json, application/json;q=0.9', GRAPHQL, false],
  ['application/json;q=0, */*', GRAPHQL, false],
  ['application/json;q=0.5, */*', GRAPHQL, false],
  // JSON is preferred, or the format of the parts is not known.
  ['application/json, multipart/mixed;q=0.5', JSON_, false],
  ['application/json, multipart/mixed;incrementalSpec=v0.2', JSON_, false],
  ['multipart/mixed;incrementalSpec=v0.2, application/json;q=0.9', JSON_, false],
  ['multipart/mixed', undefined, true],
  ['multipart/mixed;deferSpec=20220824, application/json', JSON_, true],
  ['Multipart/Mixed; deferspec="20220824"', undefined, true],
  ['application/json, multipart/mixed', JSON_, true],
  ['multipart/mixed;deferSpec=20230101, multipart/mixed;deferSpec=20220824', undefined, true],
  ['multipart/mixed;q=0.5, application/json;q=0.4', JSON_, true],
  // Nothing of this can be sent.
  ['multipart/mixed;deferSpec=20230101', undefined, false],
  ['application/json;q=0', undefined, false],
  ['image/*, text/*;q=0.5', undefined, false],
])('a caller that accepts %s gets %s, and parts: %s', (accept, json, parts) => {
  expect(accepted(accept)).toEqual({ json, parts });
});

const STREAM = '{ allPersons @stream { id } }';

test.each([
  [STREAM, 'application/json', 200, JSON_],
  [STREAM, 'multipart/mixed, application/json', 200, PARTS],
  [STREAM, 'text/event-stream', 406, JSON_],
  ['{ __typename allPersons @stream(if: false) { id } }', 'multipart/mixed', 200, JSON_],
  ['{ nothing }', GRAPHQL, 400, GRAPHQL],
  ['{ nothing }', 'application/json', 200, JSON_],
  ['{ nothing }', 'multipart/mixed', 400, JSON_],
])('%s for a caller that accepts %s has status %i and %s', async (query, accept, status, type) => {
  await using gateway = await startGatewayOverSandbox();
  const response = await ask(gateway, query, {}, accept);
  expect([response.status, response.headers.get('content-type')]).toEqual([status, type]);
  if (status === 406) {
    expect(await response.text()).toContain('multipart/mixed;deferSpec=20220824');
    expect(gateway.logged.at(-1)).toMatchObject({ status: 406, code: 'BAD_USER_INPUT' });
  } else if (type === PARTS) {
    expect((await gathered(partsOf(response))).length).toBeGreaterThan(3);
  } else {
    expect(await response.json()).toHaveProperty(query.includes('nothing') ? 'errors' : 'data');
  }
});
