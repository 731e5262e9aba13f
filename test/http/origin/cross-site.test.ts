import { afterAll, beforeAll, expect, test } from 'vitest';
import { post, startFront, type Body, type Front } from '../front.ts';

const LISTED = 'https://people.example.com';
const QUERY = '/graphql?query={me{id}}';

let front: Front;
beforeAll(async () => {
  front = await startFront({ config: { corsOrigins: [LISTED] } });
});
afterAll(() => front[Symbol.asyncDispose]());

test.each<[string, Record<string, string>]>([
  ['nothing', {}],
  ['a word on what is accepted', { accept: 'application/graphql-response+json' }],
  ['the type of a form', { 'content-type': 'application/x-www-form-urlencoded' }],
  ['plain text', { 'content-type': 'text/plain; a=application/json' }],
  ['a password that the browser remembers', { authorization: 'Basic YTpi' }],
  ['a listed origin', { origin: LISTED }],
])('a GET that any page can send is refused: with %s', async (_, headers) => {
  const { status, errors } = await answerTo(fetch(front.url + QUERY, { headers }));
  expect(status).toBe(400);
  expect(errors).toEqual([
    {
      message: expect.stringContaining('"apollo-require-preflight: true"') as string,
      extensions: { code: 'BAD_USER_INPUT' },
    },
  ]);
});

test.each<[string, Record<string, string>]>([
  ['the header of Apollo', { 'apollo-require-preflight': 'true' }],
  ['the name of an operation', { 'x-apollo-operation-name': 'A' }],
  ['an API key', { 'x-api-key': 'a' }],
  ['a bearer token', { authorization: 'Bearer a' }],
  ['the type of JSON', { 'content-type': 'application/json; charset=utf-8' }],
])('a GET that needs a preflight is executed: with %s', async (_, headers) => {
  const answer = await answerTo(fetch(front.url + QUERY, { headers }), 1);
  expect(answer).toEqual({ status: 200, data: { me: { id: 1 } } });
});

test.each(['cross-site', 'same-site'])(
  'with sec-fetch-site %s only requests from a listed origin are executed',
  async (site) => {
    for (const origin of ['https://evil.example', 'null', undefined]) {
      const headers = { 'sec-fetch-site': site, 'x-api-key': 'a', ...(origin && { origin }) };
      for (const request of [
        fetch(front.url + QUERY, { headers }),
        fetch(`${front.url}/graphql`, post({ query: '{ me { id } }' }, headers)),
      ]) {
        const { status, errors } = await answerTo(request);
        expect(status).toBe(403);
        expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
        expect(errors![0]!.message).toContain('CORS_ORIGINS');
      }
    }
    const headers = { 'sec-fetch-site': site, origin: LISTED };
    const listed = fetch(`${front.url}/graphql`, post({ query: '{ me { id } }' }, headers));
    expect((await answerTo(listed, 1)).status).toBe(200);
  },
);

test.each(['same-origin', 'none'])(
  'with sec-fetch-site %s requests are executed, even behind a proxy that changes the host',
  async (site) => {
    const headers = { 'sec-fetch-site': site, origin: 'http://localhost:5173' };
    const answer = fetch(`${front.url}/graphql`, post({ query: '{ me { id } }' }, headers));
    expect((await answerTo(answer, 1)).status).toBe(200);
  },
);

/** Returns the answer, and checks the number of upstream requests. */
async function answerTo(
  request: Promise<Response>,
  upstreamRequests = 0,
): Promise<Body & { status: number }> {
  const before = front.service.stats.requests.graphql;
  const response = await request;
  const body = (await response.json()) as Body;
  expect(front.service.stats.requests.graphql - before).toBe(upstreamRequests);
  return { status: response.status, ...body };
}
