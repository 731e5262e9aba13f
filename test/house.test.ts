import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { expect, test } from 'vitest';

const files = globSync('{src,sandbox}/**/*.{ts,js}');

test('the sandbox imports nothing of src', () => {
  const imported = files.filter((file) => file.startsWith('sandbox')).flatMap(importsOf);
  expect(imported.length).toBeGreaterThan(0);
  expect(imported.filter((file) => !file.startsWith('sandbox'))).toEqual([]);
});

test('no imports form a circle, not even imports of types', () => {
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]) => {
    if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' -> '));
    if (done.has(file) || way.includes(file)) return;
    importsOf(file)
      .filter((next) => next.endsWith('.ts'))
      .forEach((next) => visit(next, [...way, file]));
    done.add(file);
  };
  for (const file of files) visit(file, []);
  expect(circles).toEqual([]);
});

test('no imports between the rooms of a folder, and its files outside of them, form a circle', () => {
  const folders = new Set(files.map(roomOf).filter((room) => !/\.(ts|js|cjs)$/.test(room)));
  const circles = [...folders].flatMap((folder) => {
    const inFolder = files.filter((file) => file.startsWith(join('src', folder, sep)));
    const roomIn = (file: string) => {
      const [room] = relative(join('src', folder), file).split(sep);
      return `${folder}/${room}`;
    };
    const next = new Map<string, Set<string>>();
    for (const file of inFolder) {
      const from = next.get(roomIn(file)) ?? new Set();
      next.set(roomIn(file), from);
      for (const to of importsOf(file)) if (inFolder.includes(to)) from.add(roomIn(to));
      from.delete(roomIn(file));
    }
    const reached = (room: string, seen = new Set<string>()): Set<string> => {
      for (const to of next.get(room) ?? []) if (!seen.has(to)) reached(to, seen.add(to));
      return seen;
    };
    return [...next.keys()].filter((room) => reached(room).has(room));
  });
  expect(circles).toEqual([]);
});

function importsOf(file: string): string[] {
  return [...read(file).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, path]) =>
    relative('.', join(dirname(file), path!)),
  );
}

function roomOf(file: string): string {
  const [root, room] = file.split(sep);
  return root === 'src' ? room! : root!;
}

function read(file: string): string {
  return readFileSync(file, 'utf8');
}
