import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { entryFor } from '../../support/gateway/api-key.ts';
import { post, startFront, type Body, type Front } from '../front.ts';

const apiKeys = [
  entryFor('gate', 'gate', 'read', 'router'),
  entryFor('portal', 'portal', 'read'),
  entryFor('writer', 'writer', 'read', 'write'),
];

let front: Front;
beforeAll(async () => {
  front = await startFront({
    config: {
      maxTokens: 400,
      maxDepth: 4,
      maxAliases: 10,
      auth: { apiKeys, jwt: undefined },
    },
  });
});
afterAll(() => front[Symbol.asyncDispose]());

const aliases = (count: number) =>
  `{ ${Array.from({ length: count }, (_, index) => `a${index}: __typename`).join(' ')} }`;

describe('an operation at the limit is answered, and one above it is refused', () => {
  test.each([
    ['aliases', aliases(10), aliases(11), /^The operation has 11 aliases, .* 10 .*MAX_ALIASES/],
    [
      'aliases in a fragment, wherever it is spread',
      '{ me { ...A } again: me { ...A } more: me { id } } fragment A on Candidate { a: id b: id c: id d: id }',
      '{ me { ...A } again: me { ...A } more: me { x: id } } fragment A on Candidate { a: id b: id c: id d: id }',
      / 11 aliases, those of a fragment counted wherever it is spread/,
    ],
    [
      'levels',
      '{ me { ... on Candidate { vacancy { candidates { __typename } } } } }',
      '{ me { ... on Candidate { vacancy { candidates { items { id } } } } } }',
      /^The operation is 5 levels deep; at most 4 .*MAX_DEPTH/,
    ],
    [
      'levels in fragments',
      '{ ...A } fragment A on Query { me { ...B } } fragment B on Candidate { vacancy { ...C } } fragment C on Vacancy { candidates { __typename } }',
      '{ me { ...B } } fragment B on Candidate { vacancy { ...C } } fragment C on Vacancy { candidates { items { id } } }',
      /5 levels deep/,
    ],
    [
      'tokens',
      `{ me { id ${'... { id } '.repeat(98)} } }`,
      `{ me { id ${'... { id } '.repeat(99)} } }`,
      /^The document has more than 400 tokens .*MAX_TOKENS/,
    ],
    [
      'characters of a name',
      `{ ${'a'.repeat(255)}: __typename }`,
      `{ ${'a'.repeat(256)}: __typename }`,
      /^A name in the document has 256 characters; at most 255 /,
    ],
  ])('%s', async (_, most, more, message) => {
    const taken = await ask(most, 'portal');
    expect(JSON.stringify(taken)).not.toContain('OPERATION_TOO_COMPLEX');
    const before = front.service.stats.requests.graphql;
    const { data, errors } = await ask(more, 'portal');
    expect(data).toBeUndefined();
    expect(errors).toEqual([
      {
        message: expect.stringMatching(message) as string,
        extensions: { code: 'OPERATION_TOO_COMPLEX' },
      },
    ]);
    expect(front.service.stats.requests.graphql).toBe(before);
  });

  test('the limits apply to each operation of a document separately', async () => {
    const { errors } = await ask(`query A ${aliases(10)} query B ${aliases(10)}`, 'portal', 'A');
    expect(errors).toBeUndefined();
  });

  test('all exceeded limits are reported at once', async () => {
    const { errors } = await ask(
      `{ ${aliases(11).slice(1, -1)} me { ... on Candidate { vacancy { candidates { items { id } } } } } }`,
      'portal',
    );
    expect(errors).toHaveLength(1);
    expect(errors![0]!.message).toMatch(/5 levels deep.* 11 aliases/);
  });
});

describe('a router', () => {
  test('a router may use any number of aliases, and other callers may not, whoever sent the operation first', async () => {
    for (const query of [aliases(60), `query Again ${aliases(61)}`]) {
      const callers = query.startsWith('{') ? ['gate', 'portal'] : ['portal', 'gate'];
      for (const caller of [...callers, ...callers]) {
        const { data, errors } = await ask(query, caller);
        if (caller === 'gate')
          expect([Object.keys(data!).length, errors]).toEqual([expect.any(Number), undefined]);
        else expect(errors![0]!.extensions.code).toBe('OPERATION_TOO_COMPLEX');
      }
    }
  });

  test('the other limits apply to a router too', async () => {
    const { errors } = await ask(
      '{ me { ... on Candidate { vacancy { candidates { items { id } } } } } }',
      'gate',
    );
    expect(errors![0]!.extensions.code).toBe('OPERATION_TOO_COMPLEX');
  });
});

test('a supergraph without credentials may request entities under any number of aliases', async () => {
  await using open = await startFront({ config: { maxAliases: 0 } });
  const reference = '{ __typename: "Candidate", id: 1 }';
  const query = `{ ${Array.from({ length: 60 }, (_, index) => `_${index}: _entities(representations: [${reference}]) { __typename }`).join(' ')} }`;
  const response = await fetch(`${open.url}/graphql`, post({ query }));
  const { data, errors } = (await response.json()) as Body;
  expect(errors).toBeUndefined();
  expect(Object.keys(data!)).toHaveLength(60);
});

async function ask(query: string, key: string, operationName?: string): Promise<Body> {
  const request = post({ query, operationName }, { 'x-api-key': key });
  return (await (await fetch(`${front.url}/graphql`, request)).json()) as Body;
}
