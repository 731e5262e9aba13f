import { execFile } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

export const DOCUMENTS: readonly string[] = [
  'README.md',
  'examples/README.md',
  ...globSync('docs/*.md').toSorted(),
];

/** A fenced block of a document. */
export interface Block {
  readonly document: string;
  /** Empty if the fence names none. */
  readonly language: string;
  readonly text: string;
}

export function blocksOf(document: string): Block[] {
  const fences = read(document).matchAll(/^```(\w*)\n([^]*?)^```/gm);
  return [...fences].map(([, language, text]) => ({ document, language: language!, text: text! }));
}

/** The only block of a document that contains this. */
export function blockWith(document: string, content: string): string {
  const found = blocksOf(document).filter(({ text }) => text.includes(content));
  if (found.length === 1) return found[0]!.text;
  throw new Error(`${document} has ${found.length} blocks with ${content}`);
}

/** The texts between backquotes, in sentences and tables. */
export function inlineCode(document: string): string[] {
  const prose = read(document).replaceAll(/^```[^]*?^```/gm, '');
  return [...prose.matchAll(/`([^`]+)`/g)].map(([, code]) =>
    code!.replaceAll(/\s+/g, ' ').replaceAll('\\|', '|'),
  );
}

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
  const lists = read(notes)
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
export async function runInShell(commands: string, folder: string): Promise<string> {
  const start = `while [ "$1" != -- ]; do shift; done; shift
exec '${process.execPath}' '${resolve('src/main.ts')}' "$@"`;
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

function read(path: string): string {
  return readFileSync(path, 'utf8');
}
