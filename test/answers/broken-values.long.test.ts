import { describe, expect, test } from 'vitest';
import { fullSdl, fullService } from '../support/imitations/honest.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { altered, json, type AnsweredPage } from '../support/imitations/scripted.ts';

type Path = (string | number)[];

const LONG = (JSON as unknown as { rawJSON(text: string): object }).rawJSON('12345678901234567890');

/** The three fields that return the records of a list, each with the path of the record at `index`. */
function waysTo(field: string, selection: string, first = 3) {
  const all = `all${field[0]!.toUpperCase()}${field.slice(1)}`;
  const connection = `${field}Connection`;
  return [
    { query: `{ ${all}(limit: ${first}) ${selection} }`, list: [all] },
    {
      query: `{ ${connection}(first: ${first}) { nodes ${selection} } }`,
      list: [connection, 'nodes'],
    },
    {
      query: `{ ${connection}(first: ${first}) { edges { node ${selection} } } }`,
      list: [connection, 'edges'],
      below: ['node'],
    },
  ] as { query: string; list: Path; below?: Path }[];
}

test('null for a record that may be null is null', async () => {
  await using gateway = await startRich();
  for (const { query } of waysTo('candidates', '{ id }')) {
    gateway.upstream.answer(
      altered(({ data }) => {
        data['candidates']!.items[1] = null as never;
      }),
    );
    const { errors } = await gateway.ask(query);
    expect(errors, query).toBeUndefined();
  }
});

const pages: [string, (page: AnsweredPage) => unknown][] = [
  ['no items', (page) => delete (page as Partial<AnsweredPage>).items],
  ['text for items', (page) => (page.items = 'x' as never)],
  ['text for a record', (page) => (page.items[1] = 'x' as never)],
  ['an integer beyond 2^53 for a record', (page) => (page.items[1] = LONG as never)],
  ['no pageInfo', (page) => delete (page as Partial<AnsweredPage>).pageInfo],
  ['null for pageInfo', (page) => (page.pageInfo = null as never)],
  ['text for hasNextPage', (page) => (page.pageInfo['hasNextPage'] = 'false')],
  ['an object for endCursor', (page) => (page.pageInfo['endCursor'] = { a: 1 })],
];

test.each(pages)('a page with %s is a coded error at the list', async (_what, change) => {
  await using gateway = await startGatewayOverFake();
  for (const [field, query] of [
    ['allPersons', '{ allPersons { id } }'],
    ['personsConnection', '{ personsConnection(first: 60) { nodes { id } } }'],
  ] as const) {
    gateway.upstream.answer(altered(({ data }) => void change(data['persons']!)));
    const { errors } = await gateway.ask(query);
    expect(errors, query).toHaveLength(1);
    expect(errors![0]!.path?.[0], query).toBe(field);
    expect(errors![0]!.extensions?.['code'], query).toMatch(
      /^(UPSTREAM_BAD_RESPONSE|DRAIN_STALLED|DRAIN_INTERRUPTED)$/,
    );
  }
});

test.each([
  ['a number', 5],
  ['nothing', undefined],
])('%s for the whole list is UPSTREAM_BAD_RESPONSE at its field', async (_what, persons) => {
  await using gateway = await startGatewayOverFake();
  gateway.upstream.answer(json({ data: { persons } }));
  for (const [field, query] of [
    ['allPersons', '{ allPersons { id } }'],
    ['personsConnection', '{ personsConnection { nodes { id } } }'],
  ] as const) {
    const { errors } = await gateway.ask(query);
    expect(errors, query).toMatchObject([
      { path: [field], extensions: { code: 'UPSTREAM_BAD_RESPONSE' } },
    ]);
  }
});

describe.each([
  ['null for all data', { data: null }],
  ['an object without the field', { data: {} }],
])('%s without errors', (_what, answer) => {
  test.each([
    ['allEvents', '{ allEvents(candidate: 1) { text } }'],
    ['eventsConnection', '{ eventsConnection(candidate: 1) { totalCount } }'],
  ])('is UPSTREAM_BAD_RESPONSE at %s: %s', async (field, query) => {
    await using gateway = await startRich();
    gateway.upstream.answer(json(answer));
    const { errors = [] } = await gateway.ask(query);
    expect(errors.length, query).toBeGreaterThan(0);
    for (const error of errors) {
      expect(error).toMatchObject({ extensions: { code: 'UPSTREAM_BAD_RESPONSE' } });
      expect(error.path![0]).toBe(field);
    }
    expect(gateway.upstream.received).toHaveLength(1);
  });

  test('is UPSTREAM_BAD_RESPONSE for a record that is looked up in a list', async () => {
    await using gateway = await startGatewayOverFake();
    gateway.upstream.answer(json(answer));
    const { errors } = await gateway.ask('{ person(id: "1") { id } }');
    expect(errors).toMatchObject([broken('person')]);
  });

  test('is UPSTREAM_BAD_RESPONSE for further pages of a nested list', async () => {
    await using gateway = await startRich();
    const page = altered(({ data }) => {
      const { vacancies } = data as never as { vacancies: { items: Record<string, never>[] } };
      for (const key of Object.keys(vacancies.items[0]!)) {
        if (key.startsWith('_rsPage')) delete vacancies.items[0]![key];
      }
    });
    gateway.upstream.answer(page, json(answer));
    const { errors } = await gateway.ask(
      '{ vacancies(first: 1) { items { allCandidates(limit: 2) { id } } } }',
    );
    expect(errors).toMatchObject([broken('vacancies', 'items', 0, 'allCandidates')]);
  });
});

test.each([['x'], [LONG]])('%j for a record by id is UPSTREAM_BAD_RESPONSE', async (value) => {
  await using gateway = await startRich();
  gateway.upstream.answer(json({ data: { _rsRecord0: value } }));
  const { data, errors } = await gateway.ask(
    '{ _entities(representations: [{ __typename: "Candidate", id: 1 }]) { ... on Candidate { id } } }',
  );
  expect(data).toEqual({ _entities: [null] });
  expect(errors).toMatchObject([broken('_entities', 0)]);
});

test('a value of a custom scalar is passed as it is, whatever its form', async () => {
  await using gateway = await startRich();
  const deep = JSON.parse('['.repeat(400) + ']'.repeat(400)) as unknown;
  const extra = [{ a: [null, 1.5, 'x'] }, { b: deep }];
  for (const { query } of waysTo('activeCandidates', '{ extra }', 1)) {
    gateway.upstream.answer(
      altered(({ data }) => (data['activeCandidates']!.items[0]!['extra'] = extra)),
    );
    const { data, errors } = await gateway.ask(query);
    expect(errors, query).toBeUndefined();
    expect(JSON.stringify(data)).toContain(JSON.stringify({ extra }));
  }
});

function broken(...path: Path) {
  return { path, extensions: { code: 'UPSTREAM_BAD_RESPONSE' } };
}

function startRich() {
  const { schema } = fullService();
  const overrides = { fields: { 'Query.events': { identity: 'at' } } };
  return startGatewayOverFake({ schema }, { snapshot: fullSdl, overrides });
}
