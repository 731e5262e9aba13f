import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { text } from '../support/imitations/scripted.ts';
import { fullSdl, fullService } from '../support/imitations/honest.ts';

test('an answer as deep as real records is accepted', async () => {
  const { schema } = fullService();
  await using gateway = await startGatewayOverFake({ schema }, { snapshot: fullSdl });
  const extra = `${'['.repeat(400)}1${']'.repeat(400)}`;
  gateway.upstream.answer(text(`{"data":{"me":{"extra":${extra}}}}`));
  const { data } = await gateway.ask('{ me { ... on Candidate { extra } } }');
  expect(JSON.stringify(data)).toBe(`{"me":{"extra":${extra}}}`);
});
