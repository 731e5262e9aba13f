import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from './service/service.ts';
import { secretsIn } from './support/gateway/written.ts';

test('every token and link of the test services is detected, wherever it is written', async () => {
  const sandbox = await startService();
  onTestFinished(() => sandbox.close());
  const link = sandbox.tokenLink;
  const set = (await (await fetch(link)).json()) as Record<string, unknown>;
  const key = `rsk_${randomBytes(32).toString('base64url')}`;
  for (const secret of [link, set['access_token'], set['refresh_token'], key, JWT]) {
    expect(secretsIn([`{"level":50,"msg":"it was ${String(secret)}, and no more"}`])).toHaveLength(
      1,
    );
  }
  expect(secretsIn(['nothing of the kind', 'sandbox-access-tokens', 'rsk_', 'eyJhIjoxfQ'])).toEqual(
    [],
  );
});

const JWT = ['{"alg":"ES256"}', '{"sub":"ada"}', 'signature']
  .map((part) => Buffer.from(part).toString('base64url'))
  .join('.');
