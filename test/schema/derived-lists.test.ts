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

test('derived fields pass on filters, defaults and nulls to the upstream', async () => {
  const { data, errors } = await rich.ask<Record<string, { stage: string }[]>>(
    `query ($stages: [Stage!] = [OFFER]) {
      byVariable: allCandidates(filter: { stage: $stages }) { stage }
      byLiteral: allCandidates(filter: { stage: [TRIAL] }, stage: null) { stage }
      limited: allCandidates(limit: 3) { stage }
      drainLimited: allCandidates(drainLimit: 2, limit: 9) { stage }
    }`,
  );
  expect(errors).toBeUndefined();
  expect(stages(data['byVariable'])).toEqual(new Set(['OFFER']));
  expect(stages(data['byLiteral'])).toEqual(new Set(['TRIAL']));
  expect(data['limited']).toHaveLength(3);
  expect(data['drainLimited']).toHaveLength(2);
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

function stages(list: { stage: string }[] = []): Set<string> {
  return new Set(list.flatMap((record) => record?.stage ?? []));
}
