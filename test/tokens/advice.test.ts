import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const TOLD = ['src/**/*.ts', 'docs/*.md', 'monitoring/*', 'README.md'];

/** Advice to use an older copy of the store. */
const PUTS_BACK = [
  /(older|old|any) (copy|backup)[^.]{0,60}\b(will do|is enough|helps)\b/i,
  /\bput\b[^.;:]{0,60}\bback\b[^.;:]{0,30}\b(older|copy|backup|gone)\b/i,
  /\bput (it|the file|its file)( of the store)? back\b/i,
  /\b(give|put)[^.;:]{0,40}\bfile back\b/i,
  /\bany copy is put back\b/i,
  /(?<!not |never )\brestore[sd]?\b[^.;:]{0,40}\b(copy|backup)\b/i,
];

test('no message, alert or page advises to put an older copy of the store back', () => {
  const advice = globSync(TOLD).flatMap((path) => {
    // Messages are split over lines, in pieces.
    const text = readFileSync(path, 'utf8').replaceAll(/['"]\s*\+\s*['"]|\s+/g, ' ');
    return PUTS_BACK.flatMap((pattern) => pattern.exec(text)?.[0] ?? []).map((it) => [path, it]);
  });
  expect(advice).toEqual([]);
});
