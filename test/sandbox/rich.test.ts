import { readFileSync } from 'node:fs';
import {
  buildClientSchema,
  buildSchema,
  getIntrospectionQuery,
  lexicographicSortSchema,
  printSchema,
  printType,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import { describe, expect, test } from 'vitest';
import type { CursorBehaviour } from '../../sandbox/cursors.ts';
import type { Sandbox, SandboxOptions, SandboxState } from '../../sandbox/sandbox.ts';
import { check, exchange, openLink, post, start } from './client.ts';

const snapshot = buildSchema(readFileSync('schema/rich.graphql', 'utf8'));

test('schema/rich.graphql is the schema of the rich sandbox', async () => {
  const { ask } = await startRich();
  const data = (await ask(getIntrospectionQuery({ specifiedByUrl: true }))) as IntrospectionQuery;
  expect(sorted(buildClientSchema(data))).toBe(sorted(snapshot));
});

test('the rich sandbox has the published types and their list unchanged', async () => {
  const { introspect } = await startRich({ rich: false });
  const published = lexicographicSortSchema(await introspect());
  const rich = lexicographicSortSchema(snapshot);
  for (const name of ['Person', 'PersonPage', 'PageInfo']) {
    expect(printType(rich.getType(name)!)).toBe(printType(published.getType(name)!));
  }
  const [ours, theirs] = [rich, published].map(
    (schema) => schema.getQueryType()!.getFields()['persons']!,
  );
  expect(String(ours!.type)).toBe(String(theirs!.type));
  expect(ours!.args.map(({ name, type }) => `${name}: ${String(type)}`)).toEqual(
    theirs!.args.map(({ name, type }) => `${name}: ${String(type)}`),
  );
});

describe.each<CursorBehaviour>(['keyset', 'record', 'position'])(
  'the rich lists with cursors that name a %s',
  (cursors) => {
    test('each list can be walked from its start to its end, each record once', async () => {
      const { ask } = await startRich({ cursors });
      const walk = async (list: string, wrap = (text: string) => text) => {
        const ids: string[] = [];
        const sizes: number[] = [];
        for (let after = 'null'; ;) {
          const text = list.replace('AFTER', `after: ${after}`);
          const data = await ask(`{ ${wrap(`list: ${text} { ${PAGE} }`)} }`);
          const { items, pageInfo } = pageIn(data);
          ids.push(...items.map(({ id }) => id));
          sizes.push(items.length);
          if (!pageInfo.hasNextPage) break;
          after = JSON.stringify(pageInfo.endCursor);
        }
        expect(new Set(ids).size).toBe(ids.length);
        expect(ids).toEqual(ids.toSorted((a, b) => Number(a) - Number(b)));
        return sizes;
      };
      expect(await walk('vacancies(AFTER)')).toEqual([50, 14]);
      expect(await walk('vacancies(first: 20, AFTER, status: CLOSED)')).toEqual([16]);
      expect(await walk('vacancies(AFTER, titleContains: "NURSE")')).toEqual([9]);
      expect(await walk('candidates(AFTER)', inVacancy)).toEqual([50, 50, 20]);
      expect(await walk('candidates(AFTER, stage: HIRED)', inVacancy)).toEqual([24]);
      expect(await walk('comments(first: 50, AFTER)', inCandidate)).toEqual([20, 20, 5]);
    });
  },
);

test('mutations change the rich lists, and refuse ids that do not exist', async () => {
  const { ask } = await startRich();
  const { persons } = (await ask('{ persons(first: 1) { items { id firstName } } }')) as {
    persons: { items: [{ id: string; firstName: string }] };
  };
  const [person] = persons.items;
  const create = (vacancyId: string, personId: string) =>
    ask(
      `mutation { createCandidate(input: { vacancyId: "${vacancyId}", personId: "${personId}" }) {
        id stage person { firstName } vacancy { id }
      } }`,
    );
  const created = (await create('64', person.id)) as { createCandidate: { id: string } };
  expect(created).toMatchObject({
    createCandidate: {
      stage: 'NEW',
      person: { firstName: person.firstName },
      vacancy: { id: '64' },
    },
  });
  const { id } = created.createCandidate;
  await ask(`mutation { moveCandidate(id: "${id}", stage: HIRED) { id } }`);
  await ask(`mutation { addComment(candidateId: "${id}", text: "Welcome!") { id } }`);
  const seen = await ask(
    '{ vacancy(id: "64") { candidates { items { id stage comments { items { text } } } } } }',
  );
  expect(seen).toMatchObject({
    vacancy: {
      candidates: {
        items: expect.arrayContaining([
          { id, stage: 'HIRED', comments: { items: [{ text: 'Welcome!' }] } },
        ]),
      },
    },
  });
  await expect(create('65', person.id)).rejects.toThrow('There is no vacancy with the id "65".');
  await expect(create('1', '1')).rejects.toThrow('There is no person with the id "1".');
});

test('a sandbox that is started with the state of another one continues where that stopped', async () => {
  let saved = '';
  const save = (state: SandboxState) => void (saved = JSON.stringify(state));
  const before = await startRich({ save });
  const { access_token, refresh_token } = await openLink(before.sandbox);
  await before.ask('mutation { moveCandidate(id: "7", stage: HIRED) { id } }');
  const renewed = (await (await exchange(before.sandbox, refresh_token)).json()) as {
    refresh_token: string;
  };
  const linkPath = new URL(before.sandbox.tokenLink).pathname;
  await before.sandbox.close();

  const { sandbox } = await startRich({ save, saved: JSON.parse(saved) as SandboxState });
  expect((await check(sandbox, access_token)).status).toBe(204);
  expect((await fetch(sandbox.url + linkPath)).status).toBe(404);
  expect((await exchange(sandbox, refresh_token)).status).toBe(400);
  expect((await exchange(sandbox, renewed.refresh_token)).status).toBe(200);
  const answer = await post(sandbox, access_token, JSON.stringify({ query: MOVED }));
  expect(await answer.json()).toMatchObject({
    data: { candidates: { items: expect.arrayContaining([{ id: '7', stage: 'HIRED' }]) } },
  });
});

test('an administrator makes and revokes tokens over HTTP', async () => {
  const sandbox = await start();
  const first = await openLink(sandbox);
  const made = await fetch(`${sandbox.url}/account/tokens`, { method: 'POST' });
  expect(await made.text()).toBe(`${sandbox.tokenLink}\n`);
  expect((await check(sandbox, first.access_token)).status).toBe(401);
  const second = await openLink(sandbox);
  expect((await check(sandbox, second.access_token)).status).toBe(204);
  await fetch(`${sandbox.url}/account/revoke`, { method: 'POST' });
  expect((await check(sandbox, second.access_token)).status).toBe(401);
  expect((await exchange(sandbox, second.refresh_token)).status).toBe(400);
  expect((await fetch(`${sandbox.url}/account/tokens`)).status).toBe(405);
});

const inVacancy = (text: string) => `vacancy(id: "1") { ${text} }`;
const inCandidate = (text: string) => `candidates(first: 1) { items { ${text} } }`;
const PAGE = 'items { id } pageInfo { hasNextPage endCursor }';
const MOVED = '{ candidates(first: 10) { items { id stage } } }';

interface Page {
  items: { id: string }[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

async function startRich(options: SandboxOptions = {}) {
  const sandbox: Sandbox = await start({ rich: true, ...options });
  const { access_token } = await openLink(sandbox);
  const ask = async (query: string): Promise<unknown> => {
    const answer = await post(sandbox, access_token, JSON.stringify({ query }));
    const { data, errors } = (await answer.json()) as {
      data?: unknown;
      errors?: { message: string }[];
    };
    if (errors) throw new Error(errors[0]!.message);
    return data;
  };
  const introspect = async () =>
    buildClientSchema((await ask(getIntrospectionQuery())) as IntrospectionQuery);
  return { sandbox, ask, introspect };
}

/** The page under the alias `list`, wherever it is. */
function pageIn(data: unknown): Page {
  let page: Page | undefined;
  JSON.stringify(data, (key, value: unknown) => {
    if (key === 'list') page = value as Page;
    return value;
  });
  return page!;
}

function sorted(schema: GraphQLSchema): string {
  return printSchema(lexicographicSortSchema(schema));
}
