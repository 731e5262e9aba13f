import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { startService } from '../service/service.ts';
import { runHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const RESULTS = 'schema/results.graphql';
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

describe('over a service whose fields return results', () => {
  test('schema check accepts its snapshot', async () => {
    const { run } = await operator();
    const { code, stdout, stderr } = await run('check');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/is that of the/);
  });

  test('schema check lists what the sandbox does not have', async () => {
    const { run, path, put } = await operator();
    put(path, (sdl) =>
      sdl
        .replace(/type PersonItem( \w+ \w+)? \{/, '$& shoeSize: Int')
        .replace(/enum VacancyStatus \{/, '$& FORGOTTEN')
        .replace(/(personSources)\(/, '$1(mood: String, '),
    );
    const { code, stdout } = await run('check', '--json');
    const report = JSON.parse(stdout) as { breaking: { path: string }[] };
    expect(report.breaking.map((change) => change.path).toSorted()).toEqual([
      'PersonItem.shoeSize',
      'Query.personSources.mood',
      'VacancyStatus.FORGOTTEN',
    ]);
    expect(code).toBe(1);
  });

  test('schema pull writes its schema', async () => {
    const { run, path, put } = await operator();
    put(path, (sdl) => sdl.replace(/type PersonItem( \w+ \w+)? \{/, '$& shoeSize: Int'));
    const { code, stdout, stderr } = await run('pull');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/Field 'shoeSize' was removed/);
    expect((await run('check')).stdout).toMatch(/is that of the snapshot/);
  });
});

async function operator() {
  const folder = temporaryFolder();
  closing.push(() => folder[Symbol.dispose]());
  const sandbox = await startService({ schema: 'results' });
  closing.push(() => sandbox.close());
  const path = folder.file('upstream.graphql');
  copyFileSync(RESULTS, path);
  const env = {
    RECRUITING_URL: sandbox.url,
    RECRUITING_SCHEMA: path,
    TOKEN_STORE: `sqlite:${folder.file('store/tokens.db')}`,
  };
  const imported = await runHere(['tokens', 'import', sandbox.tokenLink], env);
  expect(imported).toMatchObject({ code: 0, stderr: '' });
  return {
    path,
    put: (file: string, change: (sdl: string) => string) => {
      const sdl = readFileSync(file, 'utf8');
      const changed = change(sdl);
      expect(changed).not.toBe(sdl);
      writeFileSync(file, changed);
    },
    run: (...args: string[]) => runHere(['schema', ...args], env),
  };
}
