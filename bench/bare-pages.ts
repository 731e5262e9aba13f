import { askPage, type Asking } from './ask.ts';

export type Cursor = string | null;

/** What one writes without a gateway; gives where the pages begin. */
export async function bareLoop(sandbox: Asking): Promise<Cursor[]> {
  const cursors: Cursor[] = [null];
  for (;;) {
    const { pageInfo } = await askPage(sandbox, 50, cursors.at(-1));
    if (!pageInfo.hasNextPage) return cursors;
    cursors.push(pageInfo.endCursor);
  }
}

/** With nothing to find out and nothing in between: nobody can be faster on this machine. */
export async function readAtATime(
  sandbox: Asking,
  cursors: readonly Cursor[],
  atATime: number,
): Promise<void> {
  let next = 0;
  const read = async () => {
    while (next < cursors.length) await askPage(sandbox, 50, cursors[next++]);
  };
  await Promise.all(Array.from({ length: atATime }, read));
}
