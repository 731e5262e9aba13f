import { execFile } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

/** What stands between backquotes, in sentences and tables. */
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

/** Runs shell commands with an npm that does nothing but note how it was called. */
export async function runWithoutNpm(
  commands: string,
  folder: string,
): Promise<{ calls: NpmCall[]; stdout: string }> {
  const calls = join(folder, 'npm-calls');
  writeFileSync(calls, '');
  writeFileSync(
    join(folder, 'npm'),
    `#!/bin/sh\n{ printf '%s\\0' "$@"; printf '\\0'; env -0; printf '\\0'; } >> "${calls}"\n`,
    { mode: 0o755 },
  );
  const { stdout } = await promisify(execFile)('sh', ['-euc', commands], {
    cwd: folder,
    env: { PATH: `${folder}:${process.env['PATH']}` },
  });
  const lists = read(calls)
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

function read(path: string): string {
  return readFileSync(path, 'utf8');
}
