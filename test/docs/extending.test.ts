import { symlinkSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { buildSchema, execute, parse } from 'graphql';
import { blockWith } from '../support/docs/documents.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { serveRecorded } from '../support/supergraph/recorded-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(() => {
  folder = temporaryFolder();
  symlinkSync(resolve('node_modules'), folder.file('node_modules'));
});
afterAll(() => folder[Symbol.dispose]());

test('the field of the README greets every person', async () => {
  const records = await exported(blockWith('README.md', 'greeting'), 'firstName greeting');
  expect(records).toHaveLength(137);
  for (const { firstName, greeting } of records) expect(greeting).toBe(`Dear ${firstName}`);
});

test('the plugins of docs/extending.md keep answers and measure', async () => {
  const log = vi.spyOn(console, 'log').mockReturnValue();
  await exported(blockWith('docs/extending.md', 'useResponseCache'), 'id');
  expect(log.mock.calls.flat()).toContainEqual(expect.stringMatching(/^executed in \d+ ms$/));
  log.mockRestore();
});

test('the field of docs/extending.md has the initial of every person', async () => {
  const block = blockWith('docs/extending.md', "selectionSet: '{ firstName }'");
  for (const { firstName, initial } of await exported(block, 'firstName initial')) {
    expect(initial).toBe(String(firstName).charAt(0));
  }
});

test('the service of docs/extending.md adds reviews to persons, many in each request', async () => {
  const sdl = blockWith('docs/extending.md', '# reviews.graphql');
  writeFileSync(folder.file('reviews.graphql'), sdl);
  const schema = buildSchema(sdl);
  await using reviews = await serveRecorded(async (request) => {
    const { query, variables } = (await request.json()) as Question;
    const rootValue = {
      reviewedPersons: ({ ids }: { ids: string[] }) =>
        ids.map((id) => ({ id, reviews: [{ stars: 5, text: `about ${id}` }] })),
    };
    return Response.json(
      await execute({ schema, document: parse(query), variableValues: variables, rootValue }),
    );
  });
  vi.stubEnv('REVIEWS_URL', reviews.url);
  const block = blockWith('docs/extending.md', 'subschemas: [\n');
  const records = await exported(block, 'id reviews { stars text }');
  expect(records).toHaveLength(137);
  for (const record of records) {
    expect(record['reviews']).toEqual([{ stars: 5, text: `about ${record['id']}` }]);
  }
  expect(reviews.received.length).toBeLessThanOrEqual(3);
});

interface Question {
  readonly query: string;
  readonly variables?: Record<string, unknown>;
}

let files = 0;

/** Exports the people of the sandbox through a gateway with this configuration. */
async function exported(config: string, fields: string): Promise<Record<string, string>[]> {
  // Node loads each file once.
  const file = folder.file(`${(files += 1)}.config.ts`);
  writeFileSync(file, config);
  const args = ['export', 'persons', '--sandbox', '--fields', fields];
  const { code, stdout, stderr } = await runHere(args, { GATEWAY_CONFIG: file });
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('137 records') });
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, string>);
}
