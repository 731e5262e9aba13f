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
  const note = `{ printf '%s\\0' "$@"; printf '\\0'; env -0; printf '\\0'; } >> "${notes}"`;
  const stdout = await inShell(commands, folder, note);
  const lists = readFileSync(notes, 'utf8')
    .split('\0\0')
    .map((list) => list.split('\0'));
  return {
    stdout,
    calls: Array.from({ length: (lists.length - 1) / 2 }, (_, index) => ({
      args: lists[2 * index]!,
      env: Object.fromEntries(
        lists[2 * index + 1]!.map((entry) => /^([^=]*)=(.*)$/s.exec(entry)!.slice(1)),
      ) as Record<string, string>,
    })),
  };
}

/** Runs shell commands whose npm runs the gateway. Returns all that they print, whatever their exit codes. */
export async function runInShell(
  commands: string,
  folder: string,
  main = resolve('src/main.ts'),
): Promise<string> {
  const start = `while [ "$1" != -- ]; do shift; done; shift
exec '${process.execPath}' '${main}' "$@"`;
  try {
    return await inShell(`exec 2>&1\n${commands}`, folder, start);
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

async function inShell(commands: string, folder: string, npm: string): Promise<string> {
  writeFileSync(join(folder, 'npm'), `#!/bin/sh\n${npm}\n`, { mode: 0o755 });
  const { stdout } = await promisify(execFile)('sh', ['-uc', commands], {
    cwd: folder,
    env: {
      PATH: `${folder}:${process.env['PATH']}`,
      NODE_COMPILE_CACHE: resolve('node_modules/.cache/node-compile'),
    },
  });
  return stdout;
}
