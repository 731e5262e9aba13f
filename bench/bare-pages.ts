import { askPage, type GraphqlEndpoint } from './ask.ts';

export type Cursor = string | null;

/** Reads the list page by page, as a program without a gateway does. Returns the cursors of the pages. */
export async function bareLoop(sandbox: GraphqlEndpoint): Promise<Cursor[]> {
  const cursors: Cursor[] = [null];
  for (;;) {
    const { pageInfo } = await askPage(sandbox, 50, cursors.at(-1));
    if (!pageInfo.hasNextPage) return cursors;
    cursors.push(pageInfo.endCursor);
  }
}

/** Reads known pages in parallel, without a gateway: the lower bound on this machine. */
export async function readAtATime(
  sandbox: GraphqlEndpoint,
  cursors: readonly Cursor[],
  atATime: number,
): Promise<void> {
  let next = 0;
  const read = async () => {
    while (next < cursors.length) await askPage(sandbox, 50, cursors[next++]);
  };
  await Promise.all(Array.from({ length: atATime }, read));
}
