import { expect, test } from 'vitest';
import { DAY } from '../support/random/manual-clock.ts';
import { startKeptOverSandbox } from '../support/tokens/kept.ts';

const INVALID_GRANT = JSON.stringify({ error: 'invalid_grant' });

test.each([
  ['uncertain', { status: 503 }],
  ['rate-limited', { status: 429 }],
  ['refused', { status: 401 }],
  ['early-or-spent', { status: 400, body: INVALID_GRANT }],
] as const)(
  'the log line of an exchange that is %s has the id by which the service finds it',
  async (outcome, answer) => {
    const line = await failedExchange(answer, () => 'svc-1');
    expect(line).toMatchObject({ outcome, generation: 2, serviceRequestId: 'svc-1' });
  },
);

test('a refresh token that the service returns as the id of an exchange is not passed on', async () => {
  const line = await failedExchange({ status: 503 }, (token) => `of-${token}`);
  expect(line).not.toHaveProperty('serviceRequestId');
});

test('a token of an answer that is not believed is not passed on as the id of its exchange', async () => {
  const body = JSON.stringify({ access_token: 'made-access', refresh_token: 'made-refresh' });
  const line = await failedExchange({ status: 500, body }, () => 'made-access');
  expect(line).not.toHaveProperty('serviceRequestId');
});

test('an exchange that gives tokens is not logged as one that failed', async () => {
  const { clock, logged, sandbox, store } = await startKeptOverSandbox();
  const headers = { 'x-request-id': 'svc-1' };
  sandbox.tokenAnswers.every(1, (body) => ({ status: 200, body, headers }));
  await clock.pass(0.7 * DAY);
  expect(await store.read()).toMatchObject({ generation: 3 });
  expect(logged.filter(isFailure)).toEqual([]);
});

/** The log line. @param id made from the refresh token that is sent */
async function failedExchange(
  answer: { status: number; body?: string },
  id: (refreshToken: string) => string,
) {
  const { clock, logged, sandbox, store } = await startKeptOverSandbox();
  await clock.asleep();
  const { pair } = (await store.read())!;
  const headers = { 'x-request-id': id(pair.refreshToken) };
  sandbox.tokenAnswers.next({ ...answer, headers });
  await clock.pass(0.67 * DAY);
  const line = logged.find(isFailure);
  expect(line).toBeDefined();
  return line;
}

function isFailure({ msg }: Record<string, unknown>): boolean {
  return msg === 'an exchange of the refresh token gave no tokens';
}
