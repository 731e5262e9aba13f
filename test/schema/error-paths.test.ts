import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { json } from '../support/imitations/scripted.ts';
import { all, putTogether } from '../support/clients/multipart.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

// A page of the service has 30 records.
test.each([5, 6, 7, 50])(
  'a streamed list that begins with %i records has each error beside its record, at the path of its null',
  async (count) => {
    const { schema } = fullService();
    await using gateway = await startGatewayOverFake({ schema }, { snapshot: fullSdl });
    const query = `{ all: allCandidates @stream(initialCount: ${count}) { id s: score } }`;
    const parts = await all(gateway, query);
    const [first, ...later] = parts;
    const begun = (first!.errors ?? []).map(({ path }) => Number(path![1]));
    expect(begun.filter((index) => index >= count)).toEqual([]);
    const entries = later.flatMap(({ incremental = [] }) => incremental);
    for (const { items, path, errors = [] } of entries) {
      const from = Number(path.at(-1));
      const indexes = errors.map((error) => Number(error.path![1]));
      const outside = indexes.filter((index) => index < from || index >= from + items!.length);
      expect(outside).toEqual([]);
    }
    const nulls = nullsOf((putTogether(parts) as Candidates).all);
    expect(nulls.length).toBeGreaterThan(4);
    const errors = [first!, ...entries].flatMap(({ errors: these = [] }) => these);
    expect(errors.map(({ message, path }) => ({ message, path }))).toEqual(nulls);
  },
);

test('a list that is drained again, or from the middle of a page, has each error at the path of its null', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: fullSdl });
  const { data } = await gateway.ask<{
    candidatesConnection: { edges: { cursor: string }[] };
  }>('{ candidatesConnection(first: 12) { edges { cursor } } }');
  const { cursor } = data.candidatesConnection.edges[3]!;
  for (const after of [null, null, cursor]) {
    const query = 'query ($after: String) { all: allCandidates(after: $after) { id s: score } }';
    const answer = await gateway.ask<Candidates>(query, { after });
    expect(answer.errors?.map(({ message, path }) => ({ message, path }))).toEqual(
      nullsOf(answer.data.all),
    );
  }
});

type Candidates = Record<
  'all',
  readonly ({ readonly id: number; readonly s: number | null } | null)[]
>;

/** The errors of a list in which every seventh candidate has an error instead of a score. */
function nullsOf(list: Candidates['all']) {
  return Array.from(list.entries()).flatMap(([index, record]) =>
    record?.s === null
      ? [{ message: `No score for ${record.id}.`, path: ['all', index, 's'] }]
      : [],
  );
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
