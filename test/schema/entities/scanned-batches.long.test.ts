import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serviceOf, type ReceivedOperation } from '../../same/service.ts';
import { failure, makeExecutableSchema } from '../../support/imitations/honest.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import { waysOfReading } from '../../support/gateway/ways-of-reading.ts';

/*
 * A batch of records by id is taken as bytes. An answer with a member of another name is read value by value, so it
 * shows what the same batch has to become.
 */

const SDL = `
  scalar Code
  enum Mood { GLAD SAD }
  interface Being { id: ID! name: String }
  type Person implements Being {
    id: ID! name: String age: Int score: Float mood: Mood tags: [String!] extra: Code
    boss: Being pet: Pet jobs: [Job]!
  }
  type Dog implements Being { id: ID! name: String barks: Boolean! }
  type Cat { id: ID! lives: Int! }
  union Pet = Dog | Cat
  type Job { id: Int! title: String! }
  type Query { person(id: ID!): Person job(id: Int!): Job! }
`;

const schema = makeExecutableSchema(SDL, {
  Query: {
    person: (_: unknown, { id }: { id: string }) => {
      if (id === 'bad') throw failure('There is no bad person.', { code: 'BAD' });
      return Number(id) % 7 === 0 ? null : personOf(Number(id));
    },
    job: (_: unknown, { id }: { id: number }) => jobOf(id),
  },
  Person: {
    age: ({ id }: { id: number }) => {
      if (id === 1_000) throw failure('The age of 1000 is unknown.');
      return id;
    },
  },
});

function personOf(id: number): object {
  return {
    id,
    name: id % 5 === 0 ? null : `"é\\ ${id} 😀`,
    score: id / 8,
    mood: id % 2 === 0 ? 'GLAD' : 'SAD',
    tags: id % 3 === 0 ? null : ['', `${id}`],
    extra: id % 3 === 1 ? null : { a: [1, { b: null }] },
    boss: id % 4 === 0 ? { __typename: 'Dog', id: 'd1', name: 'Rex', barks: false } : null,
    pet:
      id % 2 === 0 ? { __typename: 'Cat', id, lives: 9 } : { __typename: 'Dog', id, barks: true },
    jobs: [jobOf(id), null],
  };
}

function jobOf(id: number) {
  return { id, title: `Job ${id}` };
}

const service = serviceOf({ schema });

const settings = [
  ['as the service has them', {}, ''],
  ['with other type names', { schemaPrefix: 'Recruiting' }, 'Recruiting'],
] as const;

describe.each(settings)('records %s', (_, config, prefix) => {
  let gateway: GatewayOverFake;
  beforeAll(async () => {
    gateway = await startGatewayOverFake({ persons: 0 }, { snapshot: SDL, config });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const people = range(60).map((id) => ({ __typename: `${prefix}Person`, id: String(id) }));
  const jobs = range(3).map((id) => ({ __typename: `${prefix}Job`, id }));
  const all = [...people, ...jobs, people[3]!];

  test.each([
    ['in one line', (text: string) => text],
    ['with white space', (text: string) => JSON.stringify(JSON.parse(text), null, '\t')],
    ['with numbers for ids', withNumbers],
    ['with extensions', (text: string) => `${text.slice(0, -1)},"extensions":{"cost":[1.50]}}`],
  ])(
    'a batch that is written %s is taken as bytes, as if it was read value by value',
    async (__, spell) => {
      const read = await ask(
        gateway,
        all,
        prefix,
        (text) => `${spell(text).slice(0, -1)},"more":[]}`,
      );
      const scanned = await ask(gateway, all, prefix, spell);
      // 50 persons, the other 10, and the jobs.
      expect([read.ways, scanned.ways]).toEqual([
        { scanned: 0, general: 3 },
        { scanned: 3, general: 0 },
      ]);
      // Of a custom scalar, white space may be left.
      expect(compact(scanned.text)).toBe(compact(read.text));
      expect(JSON.parse(scanned.text)).not.toHaveProperty('errors');
      const records = (JSON.parse(scanned.text) as Entities).data._entities;
      expect(records.map((record) => record !== null)).toEqual(
        all.map(({ id }, at) => at >= 60 || Number(id) % 7 !== 0),
      );
    },
  );

  test('a batch that is written with another order of keys has the same records', async () => {
    const scanned = await ask(gateway, all, prefix, (text) => text);
    const read = await ask(gateway, all, prefix, (text) =>
      JSON.stringify(reversed(JSON.parse(text))),
    );
    expect(read.ways).toEqual({ scanned: 0, general: 3 });
    expect(read.text).toBe(scanned.text);
  });

  test.each([
    [
      'of one field',
      '1000',
      { message: 'The age of 1000 is unknown.', path: ['_entities', 13, 'age'] },
    ],
    ['of a record', 'bad', { message: 'There is no bad person.', path: ['_entities', 13] }],
  ])(
    'an error %s leaves the batch to be read value by value, and the others to be taken as bytes',
    async (__, id, error) => {
      const representations = all.with(13, { __typename: `${prefix}Person`, id });
      const { text, ways } = await ask(gateway, representations, prefix, (written) => written);
      expect(ways).toEqual({ scanned: 2, general: 1 });
      const { data, errors } = JSON.parse(text) as Entities;
      expect(errors).toMatchObject([error]);
      expect(data._entities[14]).toMatchObject({ age: 14 + 1 });
    },
  );
});

interface Entities {
  readonly data: { readonly _entities: readonly (Record<string, unknown> | null)[] };
  readonly errors?: readonly unknown[];
}

/** Makes the service write its answers in another way. */
function serve({ upstream }: GatewayOverFake, spell: (text: string) => string): void {
  upstream.answer(async (response, { body }) => {
    const text = await service(JSON.parse(body) as ReceivedOperation);
    response.writeHead(200, { 'content-type': 'application/json' }).end(spell(text));
  });
}

/** Asks for entities. `ways`: how the answers of the service were read. */
async function ask(
  gateway: GatewayOverFake,
  representations: readonly object[],
  prefix: string,
  spell: (text: string) => string,
) {
  serve(gateway, spell);
  const before = await waysOfReading(gateway.gateway);
  const query = `query ($representations: [_Any!]!) {
    _entities(representations: $representations) {
      __typename
      ... on ${prefix}Person {
        id anAliasOfTheName: name other: id age score mood tags extra
        boss { __typename id name ... on ${prefix}Dog { barks } }
        pet { ... on ${prefix}Dog { id barks } ... on ${prefix}Cat { __typename id lives } }
        jobs { id title }
      }
      ... on ${prefix}Job { number: id title }
    }
  }`;
  const response = await gateway.fetch('/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables: { representations } }),
  });
  const text = await response.text();
  const { scanned, general } = await waysOfReading(gateway.gateway);
  const ways = { scanned: scanned - before.scanned, general: general - before.general };
  return { text, ways };
}

/** Writes ids as numbers, as a service with numeric keys may. */
function withNumbers(text: string): string {
  return text.replaceAll(/("(?:id|other)":)"(\d+)"/g, '$1$2');
}

function compact(text: string): string {
  return JSON.stringify(JSON.parse(text));
}

function reversed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(reversed);
  const entries = Object.entries(value).toReversed();
  return Object.fromEntries(entries.map(([key, member]) => [key, reversed(member)]));
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at + 1);
}
