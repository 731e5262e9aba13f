import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
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
