import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { runHere } from '../support/gateway/run-here.ts';

describe('keys new', () => {
  test('the command makes a key, and an entry with its hash that the gateway accepts unchanged', async () => {
    const { key, entry, text } = await make('portal');
    expect(entry).toBe(`portal:${createHash('sha256').update(key).digest('hex')}:read`);
    expect(text.split(key)).toHaveLength(2);
    const { auth } = readConfig(
      { RECRUITING_URL: 'https://api.example.com', AUTH_API_KEYS: entry },
      () => '',
    );
    expect(auth?.apiKeys).toMatchObject([{ name: 'portal', scopes: ['read'] }]);
  });

  test('each key is another one, of 32 random bytes, with the requested scopes', async () => {
    const keys = await Promise.all([make('a'), make('a'), make('a', '--scopes', 'read+router')]);
    expect(new Set(keys.map(({ key }) => key)).size).toBe(3);
    for (const { key } of keys) expect(Buffer.from(key.slice(4), 'base64url')).toHaveLength(32);
    expect(keys[2].entry).toMatch(/^a:.*:read\+router$/);
  });

  test('the command says what each scope is for, and which of them the key has', async () => {
    const { text } = await make('portal');
    expect(text).toMatch(/ x read +queries .* 500 records .* totalCount /);
    expect(text).toMatch(/ - drain +queries that return more records/);
    expect(text).toMatch(/ - write .*\n.* - router /);
    expect((await make('all', '--scopes', 'read+write')).text).toMatch(/ x write /);
  });

  test('the command needs no configuration, and ignores an invalid one', async () => {
    const { code } = await runHere(['keys', 'new', 'a'], { AUTH_API_KEYS: 'wrong', PORT: 'x' });
    expect(code).toBe(0);
  });

  test.each<[string[], string]>([
    [['a b'], 'The key has a name that does not consist of at most 64 letters, digits, dots,'],
    [['a:b'], 'The key has a name'],
    [['a', '--scopes', 'all'], 'The key has an unknown scope; the scopes are read, drain,'],
    [['a', '--scopes', 'read+\u001b[31m'], 'The key has an unknown scope;'],
    [
      ['a', '--scopes', 'router'],
      'The key has neither the scope read nor write; add one of these two',
    ],
    [[], "missing required argument 'name'"],
  ])('%j is refused with one sentence, and no key is made', async (args, sentence) => {
    const { code, stdout, stderr } = await runHere(['keys', 'new', ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(sentence);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});

async function make(...args: string[]) {
  const { code, stdout, stderr } = await runHere(['keys', 'new', ...args]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [key = '', entry = ''] = stdout.match(/^ {4}\S+$/gm)!.map((line) => line.trim());
  return { key, entry, text: stdout };
}
