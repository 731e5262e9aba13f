import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

let rich: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
beforeAll(async () => {
  rich = await startGatewayOverSandbox({ schema: fullService().schema }, { snapshot: fullSdl });
});
afterAll(() => rich[Symbol.asyncDispose]());

test('a cursor of another list, or of the same list with other filters, is refused', async () => {
  const active = await cursorOf('activeCandidatesConnection(first: 3)');
  expect(await use('activeCandidatesConnection(after: $after)', active)).toBeUndefined();
  expect(await use('allActiveCandidates(after: $after, limit: 1)', active)).toBeUndefined();
  expect(await use('namedConnection(after: $after)', active)).toBe('CURSOR_INVALID');
  expect(await use('allNamed(after: $after)', active)).toBe('CURSOR_INVALID');

  const open = await cursorOf('openingsConnection(first: 3, open: true)');
  expect(await use('openingsConnection(after: $after, open: true)', open)).toBeUndefined();
  expect(await use('openingsConnection(after: $after, open: false)', open)).toBe('CURSOR_INVALID');
  expect(await use('openingsConnection(after: $after)', open)).toBe('CURSOR_INVALID');

  const offers = await cursorOf('candidatesConnection(filter: { stage: [OFFER], minScore: 1 })');
  expect(
    await use(
      'candidatesConnection(after: $after, filter: { minScore: 1, stage: [OFFER] })',
      offers,
    ),
  ).toBeUndefined();
  expect(
    await use('candidatesConnection(after: $after, filter: { stage: [NEW], minScore: 1 })', offers),
  ).toBe('CURSOR_INVALID');
});

test('a cursor of a connection in the plain list is explained', async () => {
  const after = await cursorOf('activeCandidatesConnection(first: 1)');
  const { errors } = await rich.ask(
    'query ($after: String) { activeCandidates(first: 1, after: $after) { items { id } } }',
    { after },
  );
  expect(errors![0]!.message).toMatch(/this `after` is a cursor of a connection/);
});

async function cursorOf(call: string): Promise<string> {
  const { data } = await rich.ask<{ c: { edges: { cursor: string }[] } }>(
    `{ c: ${call} { edges { cursor } } }`,
  );
  return data.c.edges[0]!.cursor;
}

/** The error code of using the cursor in this field. */
async function use(call: string, after: string): Promise<unknown> {
  const { errors } = await rich.ask(`query ($after: String) { c: ${call} { __typename } }`, {
    after,
  });
  return errors?.[0]?.extensions?.['code'];
}
