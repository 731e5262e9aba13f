import { schemaFromExecutor, wrapSchema } from '@graphql-tools/wrap';
import { parse } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createExecutor, type ServiceExecutor, type Settings } from '../../src/library/index.ts';
import { startService, type Service } from '../service/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

let sandbox: Service;
let folder: ReturnType<typeof temporaryFolder>;
let settings: Settings;
beforeEach(async () => {
  sandbox = await startService({ persons: 3 });
  folder = temporaryFolder();
  // No keys for callers: the program is the only caller.
  settings = {
    RECRUITING_URL: sandbox.url,
    TOKEN_LINK: sandbox.tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    LOG_LEVEL: 'silent',
  };
});
afterEach(async () => {
  await sandbox.close();
  folder[Symbol.dispose]();
});

const PEOPLE = parse('query People($first: Int) { persons(first: $first) { items { id } } }');

test("another Yoga serves the service's own schema through the executor", async () => {
  await using opened = await open();
  const { executor } = opened;
  const schema = wrapSchema({ schema: await schemaFromExecutor(executor), executor });
  const yoga = createYoga({ schema, logging: false });
  const answer = await yoga.fetch('http://localhost/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer of-the-caller' },
    body: JSON.stringify({ query: '{ people: persons(first: 2) { items { id } } }' }),
  });
  expect(await answer.json()).toEqual({ data: { people: { items: ids().slice(0, 2) } } });
  expect(sandbox.stats.lastHeaders?.authorization).not.toContain('of-the-caller');
});

test('the tokens stay in the store: the next program needs no link', async () => {
  {
    await using opened = await open();
    expect(await opened.executor({ document: PEOPLE })).toMatchObject({
      data: { persons: { items: ids() } },
    });
  }
  await using opened = await open({ TOKEN_LINK: undefined });
  expect(await opened.executor({ document: PEOPLE, variables: { first: 1 } })).toEqual({
    data: { persons: { items: ids().slice(0, 1) } },
  });
});

test('a failure is a result with a code, and so are requests after the end', async () => {
  await using opened = await open();
  await opened.executor({ document: PEOPLE });
  sandbox.revoke();
  expect(await opened.executor({ document: PEOPLE })).toMatchObject({
    errors: [{ extensions: { code: 'UPSTREAM_UNREACHABLE' } }],
  });
  await opened.close();
  await opened.close();
  expect(await opened.executor({ document: PEOPLE })).toMatchObject({
    errors: [{ extensions: { code: expect.any(String) } }],
  });
});

async function open(others: Settings = {}): Promise<AsyncDisposable & ServiceExecutor> {
  const opened = await createExecutor({ settings: { ...settings, ...others } });
  return { ...opened, [Symbol.asyncDispose]: () => opened.close() };
}

function ids(): { id: string }[] {
  return sandbox.persons.all().map(({ id }) => ({ id }));
}
