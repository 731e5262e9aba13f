import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** One call of npm. */
export interface NpmCall {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Runs shell commands with an npm that only records how it was called. */
export async function runWithoutNpm(
  commands: string,
  folder: string,
): Promise<{ calls: NpmCall[]; stdout: string }> {
  const notes = join(folder, 'npm-calls');
  writeFileSync(notes, '');
  const note = `#!${process.execPath}
const call = { args: process.argv.slice(2), env: process.env };
require('node:fs').appendFileSync('${notes}', JSON.stringify(call) + '\\n');`;
  const stdout = await inShell(commands, folder, note);
  const calls = readFileSync(notes, 'utf8').split('\n').filter(Boolean);
  return { stdout, calls: calls.map((call) => JSON.parse(call) as NpmCall) };
}

/** Runs shell commands whose npm runs the gateway. Returns all that they print, whatever their exit codes. */
export async function runInShell(
  commands: string,
  folder: string,
  main = resolve('src/main.ts'),
): Promise<string> {
  const start = `#!/bin/sh
while [ "$1" != -- ]; do shift; done; shift
exec '${process.execPath}' '${main}' "$@"`;
  try {
    return await inShell(`exec 2>&1\n${commands}`, folder, start);
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

async function inShell(commands: string, folder: string, npm: string): Promise<string> {
  writeFileSync(join(folder, 'npm'), npm, { mode: 0o755 });
  const { stdout } = await promisify(execFile)('sh', ['-uc', commands], {
    cwd: folder,
    env: {
      PATH: `${folder}:${process.env['PATH']}`,
      NODE_COMPILE_CACHE: resolve('node_modules/.cache/node-compile'),
    },
  });
  return stdout;
}
