/** An access token that the service refuses although it has not expired. */
import { expect, test } from 'vitest';
import { readTokenSet } from '../../src/tokens/token-set.ts';
import { loggedFor } from '../support/gateway/operator-lines.ts';
import { honest, refusal } from '../support/imitations/scripted.ts';
import { startKept, type Kept } from '../support/tokens/kept.ts';
import { codesOf, PERSON, startScripted } from '../support/tokens/tokens.ts';

const ENDED = 'the service accepts the access token again';

test.each([
  [401, 'token_revoked'],
  [401, ''],
  [403, 'user_blocked'],
])(
  'while the service answers %i (%j), metric and log have the trouble unauthorized, until a request is accepted',
  async (status, detail) => {
    const { service, ask, gateway, logged } = await startAccepted();
    service.answerAll(refusal(detail, status));
    for (let request = 0; request < 3; request += 1) {
      const answer = await ask(PERSON);
      expect(codesOf(answer)).toEqual(['UPSTREAM_UNAUTHORIZED']);
      expect(loggedFor(logged, answer)).toContain('`tokens check`');
    }
    expect(await troublesOf(gateway)).toEqual(['unauthorized']);
    expect(logged.filter(({ trouble }) => trouble)).toEqual([
      expect.objectContaining({
        level: 50,
        trouble: 'unauthorized',
        generation: 2,
        msg: expect.stringContaining('`tokens check`'),
      }),
    ]);

    service.answerAll(honest);
    expect(codesOf(await ask(PERSON))).toEqual([]);
    expect(await troublesOf(gateway)).toEqual([]);
    expect(logged.filter(({ msg }) => msg === ENDED)).toMatchObject([{ level: 30 }]);
  },
);

test('tokens that another process imports end the trouble unauthorized', async () => {
  const { service, ask, clock, store, url, gateway, logged } = await startAccepted();
  service.answerAll(refusal('token_revoked'));
  await ask(PERSON);
  expect(await troublesOf(gateway)).toEqual(['unauthorized']);
  const after = (await store.read())!;
  const next = readTokenSet(await (await fetch(service.makeNewSet())).json())!;
  await store.import({ baseUrl: url, pair: next, replica: 'test', after });
  await clock.pass(60_000);
  expect(await troublesOf(gateway)).not.toContain('unauthorized');
  expect(logged.filter(({ msg }) => msg === ENDED)).toEqual([]);

  service.answerAll(honest);
  await ask(PERSON);
  await ask(PERSON);
  expect(logged.filter(({ msg }) => msg === ENDED)).toHaveLength(1);
});

async function startAccepted() {
  const service = await startScripted();
  const kept = await startKept(service);
  await kept.clock.asleep();
  expect(codesOf(await kept.ask(PERSON))).toEqual([]);
  return { ...kept, service, url: service.url };
}

async function troublesOf({ metrics }: Kept['gateway']): Promise<string[]> {
  const found = (await metrics.text()).matchAll(/trouble="([a-z-]+)"\} 1$/gm);
  return [...found].map(([, trouble]) => trouble!);
}
