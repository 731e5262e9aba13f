/** An upstream's list of persons by their ids, in pages of 50, over cursors that name a record. */
export const PERSONS = `
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query { persons(first: Int, after: String): PersonPage! }
`;

/** Resolves it, as the list is at the moment. */
export function personPages(ids: readonly string[]) {
  return (_: unknown, { first, after }: { first?: number; after?: string }) => {
    const start = after ? ids.indexOf(after) + 1 : 0;
    const items = ids.slice(start, start + Math.min(first ?? 50, 50)).map((id) => ({ id }));
    return {
      items,
      pageInfo: { hasNextPage: start + items.length < ids.length, endCursor: items.at(-1)?.id },
    };
  };
}
