import { expect, test } from 'vitest';
import { ExportState } from '../../src/export/export-state.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const page = (id: string, counted: number | undefined) => ({
  ids: [id],
  faults: 0,
  after: id,
  counted,
});
const BEGUN = { operation: '', format: 'ndjson', source: '', replaces: false };

test('a resumed export expects no more records than the service counted when it was begun', () => {
  using folder = temporaryFolder();
  const file = folder.file('state');
  const first = new ExportState(file);
  first.begin(BEGUN);
  first.add(page('1', undefined));
  expect(first.progress.counted).toBeUndefined();
  first.add(page('2', 130));
  expect(first.progress.counted).toBe(130);
  first.commit([1]);
  first.close();

  const second = new ExportState(file);
  expect(second.progress).toMatchObject({ records: 2, counted: undefined });
  second.add(page('3', 140));
  expect(second.progress.counted).toBe(130);
  second.add(page('4', 120));
  expect(second.progress.counted).toBe(120);
  second.begin(BEGUN);
  expect(second.progress).toMatchObject({ records: 0, counted: undefined });
  second.close();
});
