import { writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { runHere } from '../gateway/run-here.ts';
import { temporaryFolder } from '../temporary-folder.ts';

interface PrintedParts {
  readonly snapshot: string;
  /** The content of adapters.json. */
  readonly overrides: object;
  readonly env?: Record<string, string>;
}

/** The SDL of the subgraph, as `schema print --subgraph` writes it. */
export async function printedSubgraph({
  snapshot,
  overrides,
  env = {},
}: PrintedParts): Promise<string> {
  using folder = temporaryFolder();
  writeFileSync(folder.file('upstream.graphql'), snapshot);
  writeFileSync(folder.file('adapters.json'), JSON.stringify(overrides));
  const { code, stdout, stderr } = await runHere(['schema', 'print', '--subgraph'], {
    RECRUITING_SCHEMA: folder.file('upstream.graphql'),
    ...env,
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}
