import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startService, type Service } from '../service/service.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { json } from '../support/imitations/scripted.ts';
import { startGateway, type TestGateway } from '../support/gateway/gateway.ts';
import { all, putTogether } from '../support/clients/multipart.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

const PEOPLE = [1, 7, 3, 14].map((id) => `{ __typename: "Candidate", id: ${id} }`).join(' ');
const HR_PEOPLE = PEOPLE.replaceAll('Candidate', 'HrCandidate');

const queries: [string, string][] = [
  ['the list itself', '{ c: activeCandidates(first: 15) { i: items { id s: score } } }'],
  ['several pages of it', '{ allCandidates(limit: 50) { id s: score } }'],
  [
    'two aliases of one list',
    '{ a: allActiveCandidates(limit: 8) { id s: score } b: allActiveCandidates(limit: 8) { s: score id } }',
  ],
  ['edges', '{ c: activeCandidatesConnection(first: 8) { e: edges { n: node { id s: score } } } }'],
  [
    'nodes, and edges beside them',
    '{ activeCandidatesConnection(first: 8) { nodes { id s: score } edges { node { id s: score } } } }',
  ],
  [
    'several pages of a connection',
    '{ candidatesConnection(first: 50) { edges { node { id s: score } } } }',
  ],
  [
    'the end of a list, read backward',
    '{ candidatesConnection(last: 50) { edges { node { id s: score } } } }',
  ],
  [
    'fragments',
    '{ allActiveCandidates(limit: 8) { ...F } } fragment F on Candidate { id ... { s: score } }',
  ],
  ['a union', '{ allApplicants(limit: 8) { ... on Candidate { id s: score } } }'],
  ['a list inside a record', '{ one: candidate(id: 6) { friends(limit: 1) { id s: score } } }'],
  [
    'lists in lists',
    '{ openingsConnection(first: 20) { edges { n: node { c: candidates { items { id s: score } } } } } }',
  ],
  [
    'entities',
    `{ them: _entities(representations: [${PEOPLE}]) { ... on Candidate { id s: score } } }`,
  ],
  ['one entity', '{ one: candidate(id: 7) { id s: score } }'],
  ['a mutation', 'mutation { r: rename(id: 7, name: "x") { id s: score } }'],
  ['a streamed list', '{ all: allCandidates @stream(initialCount: 8) { id s: score } }'],
];

const prefixed: [string, string][] = [
  [
    'a list in a list',
    '{ hrOpenings(first: 7) { items { candidates { items { id s: score } } } } }',
  ],
  [
    'entities',
    `{ _entities(representations: [${HR_PEOPLE}]) { ... on HrCandidate { id s: score } } }`,
  ],
  ['a stream', '{ hrAllCandidates @stream { id s: score } }'],
];

describe('the path of an error is the path of its null in the answer', () => {
  const services: Service[] = [];
  const gateways: TestGateway[] = [];
  beforeAll(async () => {
    for (const schemaPrefix of ['', 'Hr']) {
      const service = await startService({ schema: fullService().schema });
      services.push(service);
      const config = { schemaPrefix, mutations: 'all' as const };
      gateways.push(await startGateway(service, { snapshot: fullSdl, config }));
    }
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
    for (const service of services) await service.close();
  });

  test.each(queries)('%s', async (_, query) => {
    const { errorsReported, nulls } = await failuresOf(gateways[0]!, query);
    expect(errorsReported).toEqual(nulls);
  });

  test.each([5, 6, 7])(
    'a streamed list that begins with %i records, each error beside its record',
    async (count) => {
      const query = `{ all: allCandidates @stream(initialCount: ${count}) { id s: score } }`;
      const [first, ...later] = await all(gateways[0]!, query);
      const begun = (first!.errors ?? []).map(({ path }) => Number(path![1]));
      expect(begun.filter((index) => index >= count)).toEqual([]);
      for (const { items, path, errors = [] } of later.flatMap(
        ({ incremental = [] }) => incremental,
      )) {
        const [from, indexes] = [
          Number(path.at(-1)),
          errors.map((error) => Number(error.path![1])),
        ];
        expect(indexes.filter((index) => index < from || index >= from + items!.length)).toEqual(
          [],
        );
      }
    },
  );

  test.each(prefixed)('%s, under SCHEMA_PREFIX', async (_, query) => {
    const { errorsReported, nulls } = await failuresOf(gateways[1]!, query);
    expect(errorsReported).toEqual(nulls);
  });
});

/** Every seventh candidate of the full service has an error instead of a score. */
async function failuresOf(gateway: TestGateway, query: string) {
  const { data, errors = [] } = query.includes('@')
    ? await together(gateway, query)
    : await gateway.ask(query);
  const nulls = withoutScore(data, []);
  expect(nulls.length).toBeGreaterThan(0);
  return { errorsReported: inOrder(errors), nulls: inOrder(nulls) };
}

async function together(gateway: TestGateway, query: string) {
  const parts = await all(gateway, query);
  const later = parts.flatMap(({ incremental = [] }) => incremental);
  return {
    data: putTogether(parts),
    errors: [...parts, ...later].flatMap(({ errors = [] }) => errors),
  };
}

interface Failure {
  readonly message: string;
  readonly path?: readonly (string | number)[] | undefined;
}

function withoutScore(value: unknown, path: (string | number)[]): Failure[] {
  if (typeof value !== 'object' || value === null) return [];
  if ('s' in value && 'id' in value && Number(value.id) % 7 === 0) {
    expect(value.s).toBeNull();
    return [{ message: `No score for ${Number(value.id)}.`, path: [...path, 's'] }];
  }
  return Object.entries(value).flatMap(([key, inner]) =>
    withoutScore(inner, [...path, Array.isArray(value) ? Number(key) : key]),
  );
}

function inOrder(errors: readonly Failure[]): string[] {
  return errors.map(({ message, path }) => JSON.stringify([path, message])).toSorted();
}

test('an error inside a custom scalar is reported, and the scalar is unchanged', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: fullSdl });
  const extra = { deep: null, list: [null, { deep: null }], more: { truth: true } };
  const record = {
    _rsType: 'Candidate',
    __typename: 'Candidate',
    id: 1,
    _rsId: 1,
    _rsRecord0: 1,
    x: extra,
    extra,
  };
  const pageInfo = { hasNextPage: false, endCursor: null };
  for (const inside of [['deep'], ['list', 0], ['list', 1, 'deep'], ['more'], ['gone']]) {
    for (const [query, data, place, path] of [
      ['{ m: me { ... on Candidate { x: extra } } }', { m: record }, ['m', 'x'], ['m', 'x']],
      [
        '{ allActiveCandidates { extra } }',
        { activeCandidates: { items: [record], pageInfo } },
        ['activeCandidates', 'items', 0, 'extra'],
        ['allActiveCandidates', 0, 'extra'],
      ],
      [
        '{ _entities(representations: [{ __typename: "Candidate", id: 1 }]) { ... on Candidate { x: extra } } }',
        { _rsRecord0: record },
        ['_rsRecord0', 'x'],
        ['_entities', 0, 'x'],
      ],
    ] as const) {
      const error = { message: 'Inside.', extensions: { code: 'INSIDE' } };
      gateway.upstream.answer(json({ data, errors: [{ ...error, path: [...place, ...inside] }] }));
      const answer = await gateway.ask<Record<string, unknown>>(query);
      expect(JSON.stringify(answer.data), query).toContain(JSON.stringify(extra));
      const at = inside[0] === 'gone' ? undefined : [...path, ...inside];
      expect(answer.errors, query).toEqual([
        expect.objectContaining({ ...error, ...(at && { path: at }) }),
      ]);
    }
  }
});
