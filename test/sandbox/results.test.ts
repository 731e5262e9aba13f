import { readFileSync } from 'node:fs';
import {
  buildClientSchema,
  buildSchema,
  getIntrospectionQuery,
  lexicographicSortSchema,
  printSchema,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import { describe, expect, test } from 'vitest';
import type { CursorBehaviour } from '../../sandbox/cursors.ts';
import type { SandboxOptions } from '../../sandbox/sandbox.ts';
import { openLink, post, start } from './client.ts';

test('schema/results.graphql is the schema of the sandbox with results', async () => {
  const { ask } = await startResults();
  const data = (await ask(getIntrospectionQuery({ specifiedByUrl: true }))) as IntrospectionQuery;
  const snapshot = buildSchema(readFileSync('schema/results.graphql', 'utf8'));
  expect(sorted(buildClientSchema(data))).toBe(sorted(snapshot));
});

describe.each<CursorBehaviour>(['keyset', 'record', 'position'])(
  'the lists with results and cursors that name a %s',
  (cursors) => {
    test('each list can be walked from its start to its end, and its count is true', async () => {
      const { ask } = await startResults({ cursors });
      const walk = async (list: string, wrap = (text: string) => text) => {
        const seen: string[] = [];
        const sizes: number[] = [];
        let count: number | undefined;
        for (let after = 'null'; ;) {
          const field = list.replace('AFTER', after);
          const page = pageIn(await ask(`{ ${wrap(`list: ${field}`)} }`));
          seen.push(...page.items.map((item) => JSON.stringify(item)));
          sizes.push(page.items.length);
          count = page.count;
          if (!page.pageInfo.hasNextPage) break;
          after = JSON.stringify(page.pageInfo.endCursor);
        }
        expect(new Set(seen).size).toBe(seen.length);
        if (count !== undefined) expect(count).toBe(seen.length);
        return sizes;
      };
      const page = `{ items { id } count ${PAGE_INFO} }`;
      expect(await walk(`persons(after: AFTER) ${page}`)).toEqual([50, 50, 37]);
      expect(await walk(`persons(first: 3, after: AFTER, query: "ALO") ${page}`)).toEqual([1]);
      expect(await walk(`vacancies(after: AFTER) ${page}`)).toEqual([50, 14]);
      expect(await walk(`vacancies(after: AFTER, status: CLOSED) ${page}`)).toEqual([16]);
      expect(await walk(`managers(after: AFTER) { ... on Managers ${page} }`)).toEqual([50, 23]);
      expect(await walk(`personSources(first: 500, afterCursor: AFTER) ${page}`)).toEqual([
        200, 120,
      ]);
      const response = `{ items { person { id } workflowStatus { id } } count ${PAGE_INFO} }`;
      expect(await walk(`responses(after: AFTER) ${response}`)).toEqual([50, 50, 50, 50, 50, 24]);
      expect(await walk(`responses(after: AFTER, vacancyId: 3) ${response}`)).toEqual([3]);
      const history = `history(first: 45, after: AFTER) { items { id } ${PAGE_INFO} }`;
      expect(
        await walk(history, (text) => `person(id: 1) { ... on PersonItem { ${text} } }`),
      ).toEqual([45, 45, 30]);
      expect(
        await walk(
          `persons(after: AFTER) ${page}`,
          (text) => `vacancy(id: 1) { ... on VacancyItem { ${text} } }`,
        ),
      ).toEqual([50, 44]);
    });
  },
);

test('a record that does not exist, and one that may not be seen, are errors as data', async () => {
  const { ask, sandbox } = await startResults();
  const data = await ask(`{
    here: person(id: 137) { ...person } gone: person(id: 138) { ...person }
    hidden: person(id: 2000000000) { ...person }
    open: vacancy(id: 64) { ...vacancy } none: vacancy(id: 65) { ...vacancy }
    public: vacancy(id: 2000000001) { ...vacancy }
  }
  fragment person on Person { __typename ... on PersonItem { id } ... on PersonError { errorType message } }
  fragment vacancy on Vacancy {
    __typename ... on VacancyItem { id } ... on VacancyPublic { id url } ... on VacancyError { errorType }
  }`);
  expect(data).toEqual({
    here: { __typename: 'PersonItem', id: 137 },
    gone: {
      __typename: 'PersonError',
      errorType: 'NOT_FOUND',
      message: 'There is no person with the id 138.',
    },
    hidden: {
      __typename: 'PersonError',
      errorType: 'FORBIDDEN',
      message: 'This person belongs to another company.',
    },
    open: { __typename: 'VacancyItem', id: 64 },
    none: { __typename: 'VacancyError', errorType: 'NOT_FOUND' },
    public: {
      __typename: 'VacancyPublic',
      id: 2_000_000_001,
      url: 'https://jobs.example.com/vacancies/2000000001',
    },
  });
  sandbox.persons.remove(0);
  expect(await ask('{ person(id: 1) { __typename } persons { count } }')).toEqual({
    person: { __typename: 'PersonError' },
    persons: { count: 136 },
  });
});

test('an administrator who may not see the managers gets an error in place of their page', async () => {
  const { ask, sandbox } = await startResults();
  const managers =
    '{ managers { __typename ... on ManagersError { errorType message } ... on Managers { count } } }';
  await fetch(`${sandbox.url}/account/hide-managers`, { method: 'POST' });
  expect(await ask(managers)).toEqual({
    managers: {
      __typename: 'ManagersError',
      errorType: 'FORBIDDEN',
      message: 'You may not see the managers.',
    },
  });
  await fetch(`${sandbox.url}/account/show-managers`, { method: 'POST' });
  expect(await ask(managers)).toEqual({ managers: { __typename: 'Managers', count: 73 } });
});

test('the history of a person has events of three types', async () => {
  const { ask } = await startResults();
  const { person } = (await ask(`{ person(id: 1) { ... on PersonItem {
    history(first: 3) { items { __typename id createdAt ... on StatusEvent { status { name } } } }
  } } }`)) as { person: { history: { items: unknown[] } } };
  expect(person.history.items).toEqual([
    { __typename: 'CommentEvent', id: 1, createdAt: '2026-01-05T00:00:00.000Z' },
    {
      __typename: 'StatusEvent',
      id: 2,
      createdAt: '2026-01-05T01:00:00.000Z',
      status: { name: 'Invited' },
    },
    { __typename: 'LetterEvent', id: 3, createdAt: '2026-01-05T02:00:00.000Z' },
  ]);
});

const PAGE_INFO = 'pageInfo { hasNextPage endCursor }';

interface Page {
  items: unknown[];
  count?: number;
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

async function startResults(options: SandboxOptions = {}) {
  const sandbox = await start({ results: true, ...options });
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
  return { sandbox, ask };
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
