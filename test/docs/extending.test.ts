import { symlinkSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService } from '../service/service.ts';
import { blockWith } from '../support/docs/documents.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { serveHere } from '../support/gateway/run-here.ts';
import { servedOffline } from '../support/gateway/served.ts';
import { settingsOver } from '../support/gateway/settings-over.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(() => {
  folder = temporaryFolder();
  symlinkSync(resolve('node_modules'), folder.file('node_modules'));
});
afterAll(() => folder[Symbol.dispose]());

test('the fields of the README and of docs/extending.md are those of every person, also beside its plugin', async () => {
  const greetings = await people(blockWith('README.md', 'greeting'), 'firstName greeting');
  for (const { firstName, greeting } of greetings) expect(greeting).toBe(`Dear ${firstName}`);
  const initials = blockWith('docs/extending.md', "selectionSet: '{ firstName }'");
  for (const { firstName, initial } of await people(initials, 'firstName initial'))
    expect(initial).toBe(firstName!.charAt(0));
  await people(blockWith('docs/extending.md', 'useResponseCache'), 'id');
});

test('the adapters.json of docs/schema.md decides, skips and finds what its table says', () => {
  const overrides = JSON.parse(blockWith('docs/schema.md', '"byId": "vacancyById"')) as unknown;
  const sdl = `
    type Query {
      persons(first: Int, after: String): PersonPage!
      activeCandidates(first: Int, after: String): CandidatePage!
      candidate(id: ID!): Candidate
      vacancy(id: ID!): Vacancy
      vacancyById(id: ID!): Vacancy
    }
    type Person { id: ID! }
    type Candidate { id: ID! }
    type Vacancy { id: ID! candidates(first: Int, after: String): CandidatePage! }
    type PersonPage { items: [Person!]! pageInfo: PageInfo! total: Int }
    type CandidatePage { items: [Candidate!]! pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! endCursor: String }`;
  const { adapters, entities } = servedOffline(sdl, { overrides });
  expect(adapters[0]).toMatchObject({ name: 'persons', page: 20, count: 'total' });
  expect(adapters.filter(({ reach }) => reach)).toEqual([]);
  const lookups = Object.fromEntries(entities.map(({ type, lookup }) => [type.name, lookup]));
  expect(lookups).toMatchObject({
    Vacancy: { kind: 'id', field: 'vacancyById' },
    Candidate: { kind: 'list', adapter: { name: 'activeCandidates' } },
  });
});

let files = 0;

/** Asks a gateway with this configuration for all people of a service. */
async function people(config: string, fields: string) {
  // Node loads each file once.
  const file = folder.file(`${(files += 1)}.config.ts`);
  writeFileSync(file, config);
  await using service = await startService();
  await using gateway = await serveHere({
    ...settingsOver(service, { file: () => `${file}.db` }),
    GATEWAY_CONFIG: file,
  });
  const { data } = await askAt(gateway.url, `{ allPersons { ${fields} } }`);
  expect(data).toMatchObject({ allPersons: { length: 137 } });
  // Nothing is merged, so no key is requested.
  for (const { body } of service.received) expect(body).not.toContain('_rsNeeds_Person_id');
  return data!['allPersons'] as Record<string, string>[];
}
