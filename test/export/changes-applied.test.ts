/** The recipes of docs/export.md, which apply the changes of `export --changes-since` to a table. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test } from 'vitest';
import { blockWith } from '../support/docs/documents.ts';
import { runInShell } from '../support/docs/shell.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { listeningGateway } from '../support/gateway/listening-gateway.ts';
import { startPostgres } from '../support/postgres/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const DOCUMENT = 'docs/export.md';
const TABLE = 'CREATE TABLE persons (id text PRIMARY KEY, first_name text);';
const MERGE = blockWith(DOCUMENT, 'MERGE INTO persons');

const upsert = (id: string, firstName: string | null) => ({
  op: 'upsert',
  record: { id, firstName },
});
/** The changes of each run, and the table after it. */
const RUNS = [
  {
    changes: [
      upsert('1', 'Ann'),
      upsert('2', 'B "\\\'\t,\n'),
      upsert('3', null),
      upsert('2', 'Ben'),
    ],
    table: { '1': 'Ann', '2': 'Ben', '3': null },
  },
  {
    changes: [upsert('3', 'Cy'), { op: 'delete', id: '1' }, { op: 'delete', id: 'nobody' }],
    table: { '2': 'Ben', '3': 'Cy' },
  },
  { changes: [upsert('1', 'Ann')], table: { '1': 'Ann', '2': 'Ben', '3': 'Cy' } },
  { changes: [], table: { '1': 'Ann', '2': 'Ben', '3': 'Cy' } },
];
/** Each file is applied twice, as after a crash. */
const TWICE = RUNS.flatMap((run) => [run, run]);
const linesOf = (changes: readonly object[]) => changes.map((each) => `${JSON.stringify(each)}\n`);

test('the statements of docs/export.md for PostgreSQL apply the changes of each run', async () => {
  await using database = await openPostgres();
  for (const { changes, table } of TWICE) {
    await database.apply(linesOf(changes));
    expect(await database.table()).toEqual(table);
  }
});

test('characters that PostgreSQL cannot store become U+FFFD, whether or not the field is a column', async () => {
  /** As they are escaped in JSON, and as they are stored. */
  const texts = {
    [String.raw`a\u0000b`]: 'a\ufffdb',
    [String.raw`\u0000\u0000`]: '\ufffd\ufffd',
    [String.raw`\ud800`]: '\ufffd',
    [String.raw`\udc00`]: '\ufffd',
    [String.raw`\uD83D\uDE00\ude00`]: '😀\ufffd',
    [String.raw`\ud83d\ud83d\ude00`]: '\ufffd😀',
    // A backslash and letters that are no escape.
    [String.raw`\\u0000`]: String.raw`\u0000`,
    [String.raw`\\ud83d\ude00`]: `${String.raw`\ud83d`}\ufffd`,
    [String.raw`\\\u0000\"\\`]: '\\\ufffd"\\',
  };
  const escaped = Object.keys(texts);
  const upserts = (record: (text: string, at: number) => string) =>
    escaped.map((text, at) => `{"op":"upsert","record":{${record(text, at)}}}`);
  await using database = await openPostgres();
  await database.apply(upserts((text, at) => `"id":"${at}","firstName":"${text}"`));
  expect(Object.values(await database.table())).toEqual(Object.values(texts));
  await database.apply(upserts((text, at) => `"id":"${at}","firstName":"Ann","note":"${text}"`));
  expect(Object.values(await database.table())).toEqual(escaped.map(() => 'Ann'));
});

const hasDuckDb = spawnSync('duckdb', ['--version']).status === 0;

test.skipIf(!hasDuckDb)('the statements of docs/export.md for DuckDB do the same', () => {
  using folder = temporaryFolder();
  const duckDb = (sql: string) => {
    const done = spawnSync('duckdb', ['-json', 'persons.db'], { cwd: folder.path, input: sql });
    expect(done).toMatchObject({ status: 0 });
    return String(done.stdout);
  };
  duckDb(TABLE);
  for (const { changes, table } of TWICE) {
    writeFileSync(folder.file('changes.ndjson'), linesOf(changes).join(''));
    duckDb(`BEGIN; ${blockWith(DOCUMENT, 'read_json(')} ${MERGE} COMMIT;`);
    const rows = JSON.parse(duckDb('SELECT id, first_name FROM persons;')) as {
      id: string;
      first_name: string | null;
    }[];
    expect(Object.fromEntries(rows.map((row) => [row.id, row.first_name]))).toEqual(table);
  }
});

test('the commands of docs/export.md apply a file once it can be applied, and go on with the next one', async () => {
  using folder = temporaryFolder();
  await using gateway = await startGatewayOverSandbox({ persons: 120 });
  await using door = await listeningGateway(gateway);
  const applied = folder.file('applied');
  const database = `DATABASE_URL=postgres:///hr; psql() { [ -e working ] && cat changes.ndjson >> '${applied}'; }`;
  const commands = blockWith(DOCUMENT, '--file apply.sql')
    .replaceAll('/srv/exports', folder.path)
    .replace(/https:\S+/, door.url);
  const night = () => runInShell(`${database}\n${commands}`, folder.path);
  expect(await night()).toBe('');
  expect(existsSync(applied)).toBe(false);
  const file = join(folder.path, 'changes.ndjson');
  const first = readFileSync(file, 'utf8');
  expect(first.match(/"op":"upsert"/g)).toHaveLength(120);
  writeFileSync(folder.file('working'), '');
  gateway.sandbox.persons.insert(7);
  expect(await night()).toBe('');
  expect(readFileSync(applied, 'utf8')).toBe(first);
  expect(existsSync(file)).toBe(false);
  expect(await night()).toBe('');
  const [line] = linesOf([{ op: 'upsert', record: gateway.sandbox.persons.slice(7, 8)[0]! }]);
  expect(readFileSync(applied, 'utf8')).toBe(`${first}${line}`);
});

/** A database with the table, and the statements of docs/export.md. */
async function openPostgres() {
  const server = await startPostgres();
  const client = new pg.Client({ connectionString: await server.emptyStore() });
  await client.connect();
  await client.query(TABLE);
  const [create, copy, ...after] = blockWith(DOCUMENT, '\\copy line').split(/(\\copy.*\n)/);
  expect(copy).toContain("FROM 'changes.ndjson'");
  return {
    apply: async (lines: readonly string[]) => {
      await client.query(`BEGIN; ${create}`);
      // Does what psql does with \copy.
      for (const line of lines) await client.query('INSERT INTO line (change) VALUES ($1)', [line]);
      await client.query(`${after.join('')} ${MERGE} DROP TABLE line, change; COMMIT`);
    },
    table: async () => {
      const { rows } = await client.query<{ id: string; first_name: string | null }>(
        'SELECT * FROM persons ORDER BY id',
      );
      return Object.fromEntries(rows.map((row) => [row.id, row.first_name]));
    },
    [Symbol.asyncDispose]: async () => {
      await client.end();
      await server.close();
    },
  };
}
