import { expect, test } from 'vitest';
import { codedError } from '../../src/errors.ts';
import { Breaker } from '../../src/upstream/breaker.ts';
import { noTelemetry } from '../../src/upstream/telemetry.ts';
import type { Failure } from '../../src/upstream/request.ts';
import type { Reply } from '../service/service.ts';
import { cut, honest, json, refusal, silence, text } from '../service/replies.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { ManualClock, SECOND } from '../support/random/manual-clock.ts';
import { answer, heldRequests, senderWith } from './held-requests.ts';

let queries = 0;

/** Each is different, since equal queries would share a request. */
const anyPersons = () => `{ persons(first: 1) { items { id${(queries += 1)}: id } } }`;

test.each<[string, Reply, isDown: boolean]>([
  ['connections that break', cut, true],
  ['no answer in time', silence, true],
  ['502 of a proxy', text('<html>', 502), true],
  ['errors of GraphQL', json({ errors: [{ message: 'No.' }] }), false],
  ['errors of GraphQL with status 500', json({ errors: [{ message: 'No.' }] }, 500), false],
  ['what is no GraphQL', text('<html>'), false],
  ['429', json({}, 429), false],
  ['a refused token', refusal('blocked'), false],
])(
  'the breaker opens when the service is down, not when it answers, and closes when it answers again: %s',
  async (_what, reply, isDown) => {
    await using gateway = await startGatewayOverService();
    const { service, age, ask } = gateway;
    const fail = async (count: number) => {
      const before = service.received.length;
      const answers = Array.from({ length: count }, () => ask(anyPersons()));
      await service.arrived(before + count);
      if (reply === silence) age(30 * SECOND);
      await Promise.all(answers);
    };
    const reported = async () => [
      ...gateway.logged.flatMap(({ msg, level, seconds = '' }) => {
        const [said] = /is down|answers again/.exec(String(msg)) ?? [];
        return said ? [`${said} ${String(level)} ${String(seconds)}`] : [];
      }),
      /^recruiting_upstream_(breaker_open \d)/m.exec(await gateway.gateway.metrics.text())![1],
    ];
    service.answer(reply);
    await fail(4);
    age(2 * SECOND);
    await fail(1);
    expect(await reported()).toEqual(
      isDown ? ['is down 40 ', 'breaker_open 1'] : ['breaker_open 0'],
    );
    service.answer(honest);
    const { length } = service.received;
    const { errors } = await ask(anyPersons());
    if (isDown) {
      const message = expect.stringMatching(/^Nothing was sent: .*Try again in 1 s\./);
      const extensions = { code: 'UPSTREAM_UNREACHABLE', retryAfter: 1 };
      expect(errors).toMatchObject([{ message, path: ['persons'], extensions }]);
    } else expect(errors).toBeUndefined();
    expect(service.received).toHaveLength(isDown ? length : length + 1);
    age(SECOND);
    for (let count = 0; count < 2; count += 1)
      expect((await ask(anyPersons())).errors).toBeUndefined();
    const closed = [
      'is down 40 ',
      expect.stringMatching(/^answers again 30 \d$/),
      'breaker_open 0',
    ];
    expect(await reported()).toEqual(isDown ? closed : ['breaker_open 0']);
  },
);

test('requests that wait for their turn are refused when the breaker opens, and are not counted as sent', async () => {
  await using gateway = await startGatewayOverService({}, { config: { upstreamConcurrency: 1 } });
  const { service, age, ask } = gateway;
  service.answer(cut);
  const askMany = (count: number) =>
    Promise.all(Array.from({ length: count }, () => ask(anyPersons())));
  await askMany(4);
  age(2 * SECOND);
  await askMany(20);
  const counts = gateway.logged.map(({ upstreamRequests }) => Number(upstreamRequests ?? 0));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(service.received.length);
});

const REPEATED = (times: number, step: string) => Array<string>(times).fill(step).join('; ');
const FAILS = 'a sent; a fails';
/** Five failures in a row, over two seconds. */
const DOWN = `a sent; 2 s; a fails; ${REPEATED(4, FAILS)}`;
const HANGING = ['a', 'b', 'c', 'd', 'e'];
const PAUSES = [1, 2, 4, 8, 16, 30, 30];

/** Requests by their names: `m` is a mutation, `u` fails before it is sent. A refusal says for how long, s. */
test.each([
  ['four failures do not open it', `a sent; 60 s; a fails; ${REPEATED(3, FAILS)}; a sent`],
  ['failures within less than 2 s do not open it', `1.9 s; ${REPEATED(9, FAILS)}; a sent`],
  ['the first of five failures over 2 s is not too old', `${DOWN}; a refused 1`],
  [
    'an answer makes earlier failures, and their time, forgotten',
    `a sent; 2 s; a fails; ${REPEATED(3, FAILS)}; a sent; a answers; ${REPEATED(6, FAILS)}; a sent`,
  ],
  [
    'callers who leave do not open it',
    `a sent; 2 s; a leaves; ${REPEATED(5, 'a sent; a leaves')}; a sent`,
  ],
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
    'one probe is in flight at a time',
    `${DOWN}; 1 s; a sent; b refused 5; a answers; b sent; c sent`,
  ],
  [
    'after 5 s another probe is sent, and only its failure counts',
    `${DOWN}; 1 s; a sent; 5 s; b sent; a fails; c refused 5; b fails; c refused 2`,
  ],
  [
    'after longer pauses, so is the next probe',
    `${DOWN}; 1 s; ${FAILS}; 2 s; ${FAILS}; 4 s; ${FAILS}; 8 s; a sent; b refused 8`,
  ],
  ['a probe that was late still closes it', `${DOWN}; 1 s; a sent; 5 s; b sent; a answers; c sent`],
  [
    'when the caller of the probe leaves, the next query is one',
    `${DOWN}; 1 s; a sent; a leaves; b sent`,
  ],
  [
    'a mutation waits for longer, in favour of a query',
    `${DOWN}; m refused 2; 1 s; m refused 1; 1 s; m sent; m answers; m sent`,
  ],
])('the breaker: %s', async (_rule, script) => {
  const clock = new ManualClock();
  const breaker = new Breaker(clock, noTelemetry);
  const { sent, send } = heldRequests();
  const attempts = breaker.attempts(send);
  const unsent: Failure = { ...FAILURE, isUnsent: true };
  const ask = breaker.requests((request, sender) =>
    request.body === 'u' ? Promise.resolve(unsent) : attempts(request, sender),
  );
  const callers = new Map<string, AbortController>();
  for (const step of script.split('; ')) {
    const [who, does, seconds] = step.split(' ') as [string, string, string?];
    const before = sent.length;
    if (does === 's') clock.jump(Number(who) * SECOND);
    else if (does === 'sent' || does === 'refused' || does === 'unsent') {
      const leaving = new AbortController();
      callers.set(who, leaving);
      const kind = who === 'm' ? 'mutation' : 'query';
      const outcome = ask({ kind, body: who }, senderWith({ signal: leaving.signal }));
      outcome.catch(() => {});
      expect([step, sent.length - before]).toEqual([step, does === 'sent' ? 1 : 0]);
      if (does === 'refused') {
        const extensions = { code: 'UPSTREAM_UNREACHABLE', retryAfter: Number(seconds) };
        expect([step, await outcome]).toMatchObject([step, { error: { extensions } }]);
      } else if (does === 'unsent') await outcome;
    } else {
      const request = sent.findLast((each) => each.request.body === who)!;
      if (does === 'leaves') callers.get(who)!.abort(new Error('left'));
      else request.end(does === 'answers' ? answer() : { ...FAILURE });
      await new Promise(setImmediate);
    }
  }
});

const FAILURE: Failure = {
  kind: 'failure',
  isTemporary: true,
  error: codedError('UPSTREAM_UNREACHABLE', 'The service cannot be reached.'),
};
