import { expect, test } from 'vitest';
import { codedError } from '../../src/errors.ts';
import { breaker } from '../../src/upstream/breaker.ts';
import { answersTo } from '../../src/upstream/read-answer.ts';
import { noTelemetry } from '../../src/upstream/telemetry.ts';
import type { Failure, Outcome } from '../../src/upstream/request.ts';
import { cut, honest } from '../service/replies.ts';
import {
  startGatewayOverService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';
import { answer, heldRequests, query, senderWith } from './held-requests.ts';

/** Sends queries at the same time. Each is different, since equal ones would share a request. */
const askMany = ({ ask }: GatewayOverService, count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, at) =>
      ask(`{ persons(first: 1) { items { id${at}: id } } }`),
    ),
  );

test('the breaker opens when connections break, refuses requests, and closes when the service answers again', async () => {
  await using gateway = await startGatewayOverService();
  const { service, age } = gateway;
  const reported = async () => [
    ...gateway.logged.flatMap(({ msg, level, seconds = '' }) => {
      const [said] = /is down|answers again/.exec(String(msg)) ?? [];
      return said ? [`${said} ${String(level)} ${String(seconds)}`] : [];
    }),
    /^recruiting_upstream_(breaker_open \d)/m.exec(await gateway.gateway.metrics.metrics())![1],
  ];
  service.answer(cut);
  await askMany(gateway, 4);
  age(2 * SECOND);
  await askMany(gateway, 1);
  expect(await reported()).toEqual(['is down 40 ', 'breaker_open 1']);
  service.answer(honest);
  const { length } = service.received;
  const message = expect.stringMatching(/^Nothing was sent: .*Try again in 1 s\./);
  const extensions = { code: 'UPSTREAM_UNREACHABLE', retryAfter: 1 };
  const [refused] = await askMany(gateway, 1);
  expect(refused!.errors).toMatchObject([{ message, path: ['persons'], extensions }]);
  expect(service.received).toHaveLength(length);
  age(SECOND);
  expect((await askMany(gateway, 1))[0]!.errors).toBeUndefined();
  const closed = expect.stringMatching(/^answers again 30 \d$/);
  expect(await reported()).toEqual(['is down 40 ', closed, 'breaker_open 0']);
});

function read(status: number, body: string): Outcome {
  const answered = { status, headers: {}, body: Buffer.from(body) };
  const outcome = answersTo('of the gateway')(answered);
  return outcome;
}

const ERRORS = '{"errors":[{"message":"No."}]}';
const TIMEOUT = codedError('UPSTREAM_TIMEOUT', 'Too late.');
/** How a request can end. */
const ENDS: Record<string, () => Outcome> = {
  answers: answer,
  fails: () => read(502, '<html>'),
  timeout: () => ({ kind: 'failure', error: TIMEOUT }),
  errors: () => read(200, ERRORS),
  '500-with-errors': () => read(500, ERRORS),
  'not-GraphQL': () => read(200, '<html>'),
  429: () => read(429, '{}'),
  'refused-token': () => read(401, '{"detail":"blocked"}'),
};

const REPEATED = (times: number, step: string) => Array<string>(times).fill(step).join('; ');
const FAILS = 'a sent; a fails';
/** Four failures in a row, over two seconds. */
const FOUR = `${FAILS}; 2 s; ${REPEATED(3, FAILS)}`;
const DOWN = `${FOUR}; ${FAILS}`;
const HANGING = ['a', 'b', 'c', 'd', 'e'];
const PAUSES = [1, 2, 4, 8, 16, 30, 30];

/** Requests by their names: `u` fails before it is sent. A refusal says for how long, s. */
test.each([
  ['four failures do not open it', `${FAILS}; 60 s; ${REPEATED(3, FAILS)}; a sent`],
  [
    'failures within less than 2 s do not open it',
    `${FAILS}; 1.9 s; ${REPEATED(9, FAILS)}; a sent`,
  ],
  ['five failures over 2 s open it', `${DOWN}; a refused 1`],
  ['no answer in time is a failure', `${FOUR}; a sent; a timeout; a refused 1`],
  ...['errors', '500-with-errors', 'not-GraphQL', '429', 'refused-token'].map((end) => [
    `${end} is an answer`,
    `${FOUR}; a sent; a ${end}; ${REPEATED(4, FAILS)}; a sent`,
  ]),
  [
    'an answer makes earlier failures, and their time, forgotten',
    `${FOUR}; a sent; a answers; ${REPEATED(6, FAILS)}; a sent`,
  ],
  ['callers who leave do not open it', `${FAILS}; 2 s; ${REPEATED(5, 'a sent; a leaves')}; a sent`],
  ['what fails unsent does not open it', `${FAILS}; 2 s; ${REPEATED(5, 'u unsent')}; a sent`],
  [
    'what hangs does not open it while others are answered',
    `${HANGING.map((each) => `${each} sent`).join('; ')}; x sent; 2 s; x answers; ` +
      `${HANGING.map((each) => `${each} fails`).join('; ')}; x sent`,
  ],
  [
    'each failed probe doubles the pause',
    `${DOWN}; ${PAUSES.map((s) => `a refused ${s}; ${s / 2} s; a refused ${Math.ceil(s / 2)}; ${s / 2} s; ${FAILS}`).join('; ')}`,
  ],
  [
    'an answer closes it, and the next pause is short again',
    `${DOWN}; 1 s; ${FAILS}; 2 s; a sent; a answers; ${DOWN}; a refused 1`,
  ],
  [
    'one probe is in flight until its pause has passed',
    `${DOWN}; 1 s; a sent; b refused 2; 2 s; b sent; a fails; c refused 4`,
  ],
  ['a probe that was late still closes it', `${DOWN}; 1 s; a sent; 2 s; b sent; a answers; c sent`],
  [
    'a probe whose caller leaves, or that is not sent, says nothing',
    `${DOWN}; 1 s; a sent; a leaves; b refused 2; 2 s; u unsent; b refused 4; 4 s; b sent`,
  ],
])('the breaker: %s', async (_rule, script) => {
  const clock = new ManualClock();
  const { sent, send } = heldRequests();
  const unsent: Failure = { kind: 'failure', isUnsent: true, error: TIMEOUT };
  const ask = breaker(
    clock,
    noTelemetry,
  )((request, sender) => (request.body === 'u' ? Promise.resolve(unsent) : send(request, sender)));
  const callers = new Map<string, AbortController>();
  for (const step of script.split('; ')) {
    const [who, does, seconds] = step.split(' ') as [string, string, string?];
    const before = sent.length;
    if (does === 's') clock.jump(Number(who) * SECOND);
    else if (does === 'sent' || does === 'refused' || does === 'unsent') {
      const leaving = new AbortController();
      callers.set(who, leaving);
      const outcome = ask(query(who), senderWith({ signal: leaving.signal }));
      outcome.catch(() => {});
      expect([step, sent.length - before]).toEqual([step, does === 'sent' ? 1 : 0]);
      if (does === 'refused') {
        const extensions = { code: 'UPSTREAM_UNREACHABLE', retryAfter: Number(seconds) };
        expect([step, await outcome]).toMatchObject([step, { error: { extensions } }]);
      } else if (does === 'unsent') await outcome;
    } else {
      const request = sent.findLast((each) => each.request.body === who)!;
      if (does === 'leaves') callers.get(who)!.abort(new Error('left'));
      else request.end(ENDS[does]!());
      await new Promise(setImmediate);
    }
  }
});
