/** Gateways with so little memory that what they keep of requests and lists, without a limit, would end them. */
import { expect, test } from 'vitest';
import type { Reply } from '../service/service.ts';
import { startSmallGateway } from '../support/processes/small-gateway.ts';

const PERSONS = '{ persons(first: 1) { items { id } } }';

test.each([
  ['invalid operations', 800, (n: number) => `{nope${n}{x}}`, 'Cannot query field'],
  [
    'operations with long comments',
    45,
    (n: number) => `{ a${n}: persons(first: 1) { items { id } } } #${'x'.repeat(900_000)}`,
    '"items":[{"id"',
  ],
  [
    'operations with many comments',
    25,
    (n: number) => `{ a${n}: persons(first: 1) { items { id } } } ${'#\n'.repeat(30_000)}`,
    '"items":[{"id"',
  ],
])(
  'a gateway outlives any number of %s, although it keeps what it has checked',
  async (_, count, textOf, expected) => {
    await using gateway = await startSmallGateway();
    const firstPage = await gateway.ask({ query: PERSONS });
    for (let n = 0; n < count; n += 1) {
      expect(await gateway.ask({ query: textOf(n) })).toContain(expected);
    }
    expect(await gateway.ask({ query: PERSONS })).toBe(firstPage);
  },
);

test('a total of a list with long cursors takes no more memory than its page index may have', async () => {
  const pages = 700;
  await using gateway = await startSmallGateway();
  gateway.upstream.answer(pagesOfOne(pages));
  const answer = await gateway.ask({ query: '{ personsConnection { totalCount } }' });
  expect(answer).toContain(`"totalCount":${pages}`);
});

/** A list with one record in each page, and cursors of 60 KB. */
function pagesOfOne(pages: number): Reply {
  const rest = 'x'.repeat(60_000);
  return (response, { body }) => {
    const { variables } = JSON.parse(body) as { variables: { _rs_after?: string } };
    const page = Number.parseInt(variables._rs_after ?? '0', 10);
    const pageInfo = { hasNextPage: page + 1 < pages, endCursor: `${page + 1}${rest}` };
    const items = [{ _rsId: String(page), id: String(page) }];
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ data: { persons: { items, pageInfo } } }));
  };
}
