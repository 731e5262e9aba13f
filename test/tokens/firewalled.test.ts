/** A firewall answers instead of the service: its answers say nothing about tokens. */
import { expect, test } from 'vitest';
import { DAY, HOUR, MINUTE } from '../support/random/manual-clock.ts';
import { refusal, text } from '../support/imitations/scripted.ts';
import { startKept } from '../support/tokens/kept.ts';
import { codesOf, PERSON, sentAgain, startScripted } from '../support/tokens/tokens.ts';

test('after a 403 of a firewall on /auth_check, an uncertain refresh token is not sent again while the access token may work', async () => {
  const service = await startScripted();
  const { ask, clock, store } = await startKept(service);
  await clock.asleep();
  service.tokenAnswers.next('drop-before');
  service.answerChecks(text('<html>Blocked</html>', 403));
  await clock.pass(0.7 * DAY);
  expect(codesOf(await ask(PERSON))).toEqual([]);
  await clock.pass(0.2 * DAY);
  expect(service.exchanges).toHaveLength(2);

  // The set has expired: nothing is left to lose, whatever a firewall answers.
  await clock.pass(0.1 * DAY + 10 * MINUTE);
  expect(service.exchanges).toHaveLength(3);
  expect(await store.read()).toMatchObject({ generation: 3, lost: false, claim: null });
  expect(sentAgain(service.exchanges)).toEqual([]);
});

test('a 403 of the service itself means that the access token does not work: the refresh token is sent once more', async () => {
  const service = await startScripted();
  const { clock, store } = await startKept(service);
  await clock.asleep();
  service.tokenAnswers.next('drop-before');
  service.answerChecks(refusal('user_blocked', 403));
  await clock.pass(0.7 * DAY);
  await clock.pass(HOUR);
  expect(service.exchanges).toHaveLength(3);
  expect(await store.read()).toMatchObject({ generation: 3, claim: null });
});
