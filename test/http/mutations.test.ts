import { describe, expect, onTestFinished, test } from 'vitest';
import { entryFor } from '../support/gateway/api-key.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { post, startFront, type Body } from './front.ts';

const WAYS: [string, string, string?][] = [
  ['under the alias of an allowed one', 'mutation { hire: rename(id: 1, name: "New") { id } }'],
  [
    'in a fragment',
    'mutation { ...F } fragment F on Mutation { rename(id: 1, name: "New") { id } }',
  ],
  [
    'with @skip',
    'mutation { ... @skip(if: false) { rename(id: 1, name: "New") @skip(if: false) { id } } }',
  ],
  [
    'before an allowed one',
    'mutation { rename(id: 1, name: "New") { id } hire(candidate: 2, vacancy: 1001) { __typename } }',
  ],
  [
    'in one of several operations',
    'mutation A { rename(id: 1, name: "New") { id } } query B { me { id } }',
    'A',
  ],
];

describe('mutations', () => {
  test('only the mutations named in MUTATIONS are allowed, and one that is not refuses the operation', async () => {
    const { url, sent } = await start({ mutations: ['rename'] });
    const rename = 'rename(id: 1, name: "New") { name }';
    const refused = await ask(
      url,
      `mutation { ${rename} hire(candidate: 2, vacancy: 1001) { __typename } }`,
    );
    expect(refused).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    expect(sent.renames).toBe(0);
    const { data } = await ask(url, `mutation { ${rename} }`);
    expect(data).toEqual({ rename: { name: 'New' } });
    expect(sent.renames).toBe(1);
  });

  test('other mutations are refused in every form, even to callers with the scope write', async () => {
    const apiKeys = [entryFor('writer', 'writer', 'write')];
    const auth = { apiKeys, jwt: undefined };
    const { url, sent } = await start({ mutations: ['hire'], auth });
    for (const [way, query, operationName] of WAYS) {
      const request = post({ query, operationName }, { 'x-api-key': 'writer' });
      const { errors = [] } = (await (await fetch(`${url}/graphql`, request)).json()) as Body;
      const codes = errors.map(({ extensions }) => extensions.code);
      expect([way, new Set(codes)]).toEqual([way, new Set(['FORBIDDEN'])]);
    }
    expect(sent.renames).toBe(0);
  });
});

async function start(config: TestGatewayOptions['config'] = {}) {
  const front = await startFront({ config });
  onTestFinished(() => front[Symbol.asyncDispose]());
  return front;
}

async function ask(url: string, query: string): Promise<Body> {
  return (await (await fetch(`${url}/graphql`, post({ query }))).json()) as Body;
}
