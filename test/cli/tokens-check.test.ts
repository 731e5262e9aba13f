import { expect, test } from 'vitest';
import { refusal, text } from '../support/imitations/scripted.ts';
import { startWithTokens, type Operator } from './tokens-operator.ts';

test.each<[string, (operator: Operator) => unknown, number, RegExp, object]>([
  ['works', () => {}, 0, /accepts the access token\.$/m, { kind: 'works' }],
  [
    'has expired',
    ({ service }) => service.expire(),
    1,
    /has expired\. Run `tokens refresh`; a running gateway does it by itself/,
    { kind: 'refused', detail: 'token_expired' },
  ],
  [
    'is refused',
    ({ service }) => service.answerAll(refusal('token_revoked')),
    1,
    /refuses the access token \(token_revoked\).*Have the account checked/,
    { kind: 'refused', detail: 'token_revoked' },
  ],
  [
    'is forbidden',
    ({ service }) => service.answerAll(refusal('user_blocked', 403)),
    1,
    /refuses the access token \(user_blocked\).*demoted or blocked/,
    { kind: 'refused', detail: 'user_blocked' },
  ],
  [
    'is kept from the service by a firewall',
    ({ service }) => service.answerChecks(text('<html>Blocked</html>', 403)),
    1,
    /no clear answer \(status 403 that is not from the service\)\. Nothing is wrong with the tok/,
    { kind: 'unknown', why: 'status 403 that is not from the service' },
  ],
  [
    'cannot be asked about',
    ({ service }) => service.down(),
    1,
    /no clear answer \(ECONNREFUSED\).*Check RECRUITING_URL and the way to it/,
    { kind: 'unknown', why: 'ECONNREFUSED' },
  ],
  [
    'meets an error',
    ({ service }) => service.answerAll(refusal('whatever', 500)),
    1,
    /no clear answer \(status 500\)/,
    { kind: 'unknown', why: 'status 500' },
  ],
])('tokens check reports that the access token %s', async (_, bring, code, message, verdict) => {
  const operator = await startWithTokens();
  await bring(operator);
  const said = await operator.tokens(['check']);
  expect(said.stderr).toBe('');
  expect(said.stdout).toMatch(message);
  expect(said.code).toBe(code);
  const { stdout, code: again } = await operator.tokens(['check', '--json']);
  const service = new URL(operator.service.url).host;
  expect(JSON.parse(stdout)).toEqual({ service, generation: 2, ...verdict });
  expect(again).toBe(code);
  expect(operator.service.exchanges).toHaveLength(1);
});
