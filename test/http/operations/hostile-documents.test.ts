import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { post, startFront, type Body, type Front } from '../front.ts';

let front: Front;
beforeAll(async () => {
  front = await startFront();
});
afterAll(() => front[Symbol.asyncDispose]());

const many = (count: number, textOf: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => textOf(index)).join(' ');
const nested = (depth: number, inside: string) =>
  `${'vacancy { candidates { items { '.repeat(depth)}${inside}${'} } }'.repeat(depth)}`;

/** Each fragment spreads the next one twice. */
const doubling = (levels: number, twice: (next: string) => string) =>
  `{ me { ...F0 } } ${many(levels, (index) => `fragment F${index} on Candidate { ${twice(`...F${index + 1}`)} }`)} fragment F${levels} on Candidate { id }`;

const HOSTILE: [string, string, RegExp][] = [
  ['10,000 aliases', `{ ${many(10_000, (index) => `a${index}: me { id }`)} }`, /2000 tokens/],
  ['10,000 levels', `{ me { ${nested(3_334, 'id')} } }`, /2000 tokens/],
  [
    'a list in 100,000 lists',
    `{ candidate(id: ${'['.repeat(100_000)}) { id } }`,
    /2000 tokens|nested too deeply/,
  ],
  [
    'fragments that double each other, under aliases',
    doubling(60, (next) => `a: friends { ${next} } b: friends { ${next} }`),
    /more than 1000000 fields/,
  ],
  [
    'fragments that double each other, without an alias',
    doubling(13, (next) => `${next} vacancy { candidates { items { ${next} } } } ${next}`),
    /\d{5,} fields/,
  ],
  ['one field 1,000 times', `{ me { ${many(1_000, () => 'id')} } }`, /"id" is selected 1000 times/],
  [
    'one field 256 times, in pairs of pairs',
    `{ me { ${Array.from({ length: 8 }).reduce<string>((inside) => `friends { ${inside} } friends { ${inside} }`, 'id')} } }`,
    /"friends" is selected 256 times|"id" is selected 256 times/,
  ],
  [
    'one field 400 times, in fragments',
    `{ me { ${many(120, (index) => `...F${index}`)} } } ${many(120, (index) => `fragment F${index} on Candidate { vacancy { id } }`)}`,
    /"vacancy" is selected 120 times/,
  ],
];

const CIRCULAR: [string, string, RegExp][] = [
  [
    'a fragment in itself',
    '{ me { ...A } } fragment A on Candidate { friends { ...A } }',
    /Cannot spread fragment "A" within itself/,
  ],
  [
    '20 fragments in each other',
    `{ me { ...F0 } } ${many(20, (index) => `fragment F${index} on Candidate { ${many(20, (other) => `...F${other}`)} }`)}`,
    /within itself/,
  ],
  [
    'overlapping fields in a fragment of the same name',
    `{ me { ...A } } fragment A on Candidate { id } fragment A on Candidate { ${many(390, () => 'vacancy { id }')} }`,
    /There can be only one fragment named/,
  ],
];

describe('a hostile document is refused before anything is sent', () => {
  test.each(HOSTILE)('%s', async (_, query, message) => {
    const { data, errors } = await ask(query);
    expect(data).toBeUndefined();
    expect(errors!.map(({ extensions }) => extensions)).toEqual([
      { code: 'OPERATION_TOO_COMPLEX' },
    ]);
    expect(errors![0]!.message).toMatch(message);
  });

  test.each(CIRCULAR)('%s', async (_, query, message) => {
    const { data, errors } = await ask(query);
    expect(data).toBeUndefined();
    expect(errors![0]).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
    expect(errors![0]!.message).toMatch(message);
  });

  test('no request reached the service', () => {
    expect(front.service.stats.requests.graphql).toBe(0);
    expect(front.gateway.logged.filter(({ level }) => Number(level) >= 50)).toEqual([]);
  });
});

const honest = (salt: number) =>
  `query Honest${salt} { ${many(30, (index) => `a${index}: candidate(id: ${index}) { id name stage vacancy { id name title open } ...F }`)} } fragment F on Candidate { rank score no${salt} }`;

test('a hostile document takes no longer than a large honest one', async () => {
  const hostile = [...HOSTILE, ...CIRCULAR].map(([, query]) => query);
  let salt = 0;
  const fastest = async (query: (salt: number) => string) => {
    const times: number[] = [];
    for (let turn = 0; turn < 2; turn += 1) {
      salt += 1;
      const begun = process.cpuUsage();
      await ask(query(salt));
      const { user, system } = process.cpuUsage(begun);
      times.push(user + system);
    }
    return Math.min(...times);
  };
  const normal = await fastest(honest);
  for (const query of hostile) {
    expect(await fastest((each) => `# ${each}\n${query}`)).toBeLessThan(normal * 8);
  }
});

test('repeated names do not make the answer many times as long as the document', async () => {
  const name = 'n'.repeat(100_000);
  for (const query of [
    `query ${name}(${many(90, (index) => `$v${index}: Int`)}) { me { id } }`,
    `{ people(first: 50) { items { ${name}: __typename } } }`,
  ]) {
    const response = await fetch(`${front.url}/graphql`, post({ query }));
    expect((await response.text()).length).toBeLessThan(1_000);
  }
});

async function ask(query: string): Promise<Body> {
  return (await (await fetch(`${front.url}/graphql`, post({ query }))).json()) as Body;
}
