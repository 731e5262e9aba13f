import { printSchema } from 'graphql';
import { describe, expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, honest, json } from '../support/imitations/scripted.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { all, ask, next, partsOf, putTogether } from '../support/clients/multipart.ts';
import { fullService } from '../support/imitations/honest.ts';

const NO_STAGE = { message: 'No stage.', path: ['me', 'stage'] };

test('a deferred field next to a streamed list does not wait for the end of the list', async () => {
  await using gateway = await startGatewayOverFake({ persons: 600 });
  const { upstream } = gateway;
  const never = Promise.withResolvers<void>();
  upstream.answer(honest, honest, after(never.promise, honest));
  const parts = partsOf(
    await ask(
      gateway,
      `{ allPersons @stream { id } ... @defer(label: "later") { persons(first: 3) { items { id } } } }`,
    ),
  );
  expect(await next(parts)).toEqual({ data: { allPersons: [] }, hasNext: true });
  const came = [...(await next(parts)).incremental!, ...(await next(parts)).incremental!];
  expect(came).toEqual(
    [
      expect.objectContaining({ path: ['allPersons', 0] }),
      expect.objectContaining({
        label: 'later',
        path: [],
        data: { persons: { items: [{}, {}, {}].map(() => ({ id: expect.any(String) })) } },
      }),
    ].toSorted(() => (came[0]!.label ? -1 : 1)),
  );
  never.resolve();
  await parts.return();
});

test('a deferred field inside streamed records is sent with its label, after the page of these records', async () => {
  await using gateway = await startGatewayOverSandbox();
  const parts = await all(
    gateway,
    `{ allPersons @stream(initialCount: 1) { id ...Name @defer(label: "name") } }
     fragment Name on Person { firstName }`,
  );
  const increments = parts.flatMap(({ incremental = [] }) => incremental);
  const named = increments.filter(({ label }) => label === 'name');
  expect(named.map(({ path }) => path)).toEqual(
    Array.from({ length: 137 }, (_, index) => ['allPersons', index]),
  );
  expect(putTogether(parts)).toEqual({
    allPersons: gateway.sandbox.persons.all().map(({ id, firstName }) => ({ id, firstName })),
  });
});

describe('in parts', () => {
  test.each([
    `{ ... @defer { allPersons @stream(initialCount: 1) { id ... @defer { firstName } } }
     personsConnection(first: 2) { edges @stream { node { id } } } }`,
    `{ ... @defer { allPersons { id ...Name @defer } } one: persons(first: 1) { items { ...Name @defer } } }
   fragment Name on Person { firstName ...Id }
   fragment Id on Person { ... @defer { id } }`,
    `query ($no: Boolean = false) { allPersons(limit: 60) @stream { id ... @defer(if: $no) { firstName } } }`,
    `{ ...Root @defer } fragment Root on Query { a: allPersons(limit: 3) @stream { id } b: allPersons(limit: 70) @stream { id } }`,
  ])('the joined parts equal the whole answer: %s', async (query) => {
    await using gateway = await startGatewayOverSandbox();
    const parts = await all(gateway, query);
    expect(putTogether(parts)).toEqual((await gateway.ask(query)).data);
    expect(parts.length).toBeGreaterThan(1);
  });

  test.each([
    `{ vacancies(first: 2) { items { id candidatesConnection(first: 1) { nodes { id ... @defer { name } } ... @defer { pageInfo { hasNextPage } } } } } ... @defer { __typename } }`,
    `{ vacancies(first: 2) { items { id ... @defer { allCandidates(limit: 60) { id ... @defer { name } } } } } }`,
    `{ allVacancies(limit: 2) @stream { id ... @defer { allCandidates(limit: 3) @stream { id ...Name @defer } } } } fragment Name on Named { name }`,
    `{ vacanciesConnection(first: 3) { nodes @stream(initialCount: 1) { id relatedConnection(first: 1) { nodes { __typename ...Name @defer } } } } } fragment Name on Named { name }`,
    `{ vacancies(first: 3) { items { lead { id ... @defer { score } } ... @defer { lead { rank name } contactsConnection(first: 4) { edges { node { ... on Agency { ... @defer { label } } ... on Candidate { score } } } } } } } }`,
    `{ allVacancies(limit: 4) @stream { ... @defer { fragileConnection(first: 2) { nodes { text } } allCandidates(limit: 9) { ... @defer { score } rank } } } }`,
    `{ vacanciesConnection(first: 2) { ... @defer { nodes { id candidatesConnection(first: 1) { nodes { id } } } } } }`,
    `{ vacanciesConnection(first: 2) { ... @defer { edges @stream { node { allCandidates(limit: 2) { name } fragileConnection(first: 2) { nodes { text } } } } } } }`,
    `{ vacancy(id: 1) { ... @defer { lead { ... @defer { vacancy { ... @defer { title } } } } } } ... @defer { vacancy(id: 1) { name } } }`,
  ])(
    'the joined parts equal the whole answer below other records too, with the same errors: %s',
    async (query) => {
      const schema = fullService().schema;
      const snapshot = printSchema(schema);
      const overrides = { fields: { 'Vacancy.fragile': { identity: ['at', 'text'] } } };
      await using gateway = await startGatewayOverSandbox({ schema }, { snapshot, overrides });
      const parts = await all(gateway, query);
      const whole = await gateway.ask(query);
      expect(putTogether(parts)).toEqual(whole.data);
      expect(parts.length).toBeGreaterThan(1);
      const allErrors = parts.flatMap(({ errors = [], incremental = [] }) => [
        ...errors,
        ...incremental.flatMap((part) => part.errors ?? []),
      ]);
      expect(pathsOf(allErrors)).toEqual(pathsOf(whole.errors));
    },
  );
});

test('a null that deferred fields do not allow nulls these fields, with its error', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: printSchema(schema) });
  const me = { _rsType: 'Candidate', id: 1, stage: null };
  gateway.upstream.answer(json({ data: { me }, errors: [NO_STAGE] }));
  const query = '{ me { ... on Candidate { id ... @defer { stage } } } }';
  const [first, later] = await all(gateway, query);
  expect(first?.data).toEqual({ me: { id: 1 } });
  expect(later).toEqual({
    incremental: [{ data: null, path: ['me'], errors: [NO_STAGE] }],
    hasNext: false,
  });
});

test.each(['{ LIST }', '{ persons(first: 1) { items { id } } ... @defer { LIST } }'])(
  'a list that is streamed in two ways is refused before the first part: %s',
  async (query) => {
    await using gateway = await startGatewayOverSandbox();
    const list = 'personsConnection(first: 2) { nodes @stream { id } ... { nodes { firstName } } }';
    const accept = 'multipart/mixed, application/json;q=0.9';
    const response = await ask(gateway, query.replace('LIST', list), {}, accept);
    expect(await response.json()).toEqual({
      errors: [
        {
          message: expect.stringContaining('personsConnection.nodes at several places'),
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ],
    });
  },
);

test('inside a drained list that is not streamed, @defer has no effect', async () => {
  await using gateway = await startGatewayOverSandbox();
  const query = `{ allPersons { id ...Name @defer } ... @defer(label: "rest") { persons(first: 1) { items { ...Name @defer } } } }
    fragment Name on Person { firstName }`;
  const parts = await all(gateway, query);
  expect(parts[0]?.data).toEqual({
    allPersons: gateway.sandbox.persons.all().map(({ id, firstName }) => ({ id, firstName })),
  });
  expect(putTogether(parts)).toEqual((await gateway.ask(query)).data);
  const labels = parts.flatMap(({ incremental = [] }) => incremental.map(({ path }) => path));
  expect(labels).toEqual([[], ['persons', 'items', 0]]);
});

function pathsOf(errors: readonly { path?: unknown }[] = []): string[] {
  return errors.map(({ path }) => JSON.stringify(path)).toSorted();
}
