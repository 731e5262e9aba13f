import { expect, test } from 'vitest';
import { codedError } from '../../src/errors.ts';
import { answersTo } from '../../src/upstream/read-answer.ts';
import { retry } from '../../src/upstream/retry.ts';
import { json, honest } from '../service/replies.ts';
import type { Reply } from '../service/service.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { query, senderWith } from './held-requests.ts';

const PERSONS = '{ persons(first: 1) { items { id } } }';

interface Answered {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: object;
}

/** Reads an answer as if it had just arrived. */
function read({ status = 200, headers = {}, body = {} }: Answered) {
  const bytes = Buffer.from(JSON.stringify(body));
  return answersTo('of the gateway')({ status, headers, body: bytes });
}

const limited = (retryAfter: string) => ({ status: 429, headers: { 'retry-after': retryAfter } });
const failing = (...errors: object[]) => ({
  body: { errors: errors.map((each) => ({ message: 'Slow down.', ...each })) },
});

test.each<[string, Answered, seconds: number | null]>([
  ['seconds', limited('2'), 2],
  ['many seconds', limited('86400'), 86_400],
  ['zero', limited('0'), 0],
  ['a date, which is not read', limited('Thu, 01 Jan 2026 00:00:08 GMT'), null],
  ['a negative number', limited('-5'), null],
  ['a fraction', limited('1.5'), null],
  ['THROTTL in a code', failing({ extensions: { code: 'REQUEST_THROTTLED' } }), null],
  ['RATE_LIMIT, in lower case', failing({ extensions: { code: 'rate_limited' } }), null],
  ['TOO_MANY in a code', failing({ extensions: { code: 'TOO_MANY_REQUESTS' } }), null],
  ['a status', failing({ extensions: { http: { status: 429 } } }), null],
  ['a status as a text', failing({ extensions: { statusCode: '429' } }), null],
  ['429 as a code', failing({ extensions: { code: 429 } }), null],
  ['a time of zero', failing({ extensions: { retryAfter: 0 } }), 0],
  ['a time like a header', failing({ extensions: { retry_after: '12' } }), 12],
  [
    'a header beside an error',
    { ...failing({ extensions: { code: 'THROTTLED' } }), headers: { 'retry-after': '60' } },
    60,
  ],
  [
    'times of two errors',
    failing({ extensions: { retryAfter: 11 } }, { extensions: { retryAfter: 14 } }),
    14,
  ],
  ['the second error', failing({}, { extensions: { code: 'THROTTLED' } }), null],
])(
  'a limited rate is recognized by %s, and its error says when to try again',
  (_, answer, seconds) => {
    const retryAfter = seconds === null ? null : Math.max(1, seconds);
    const again = retryAfter === null ? 'later.' : `in ${retryAfter} s.`;
    expect(read(answer)).toMatchObject({
      isTemporary: true,
      retryAfterMs: seconds === null ? undefined : seconds * 1_000,
      error: {
        message: expect.stringContaining(`Try again ${again}`),
        extensions: { code: 'UPSTREAM_RATE_LIMITED', retryAfter },
      },
    });
  },
);

const THROTTLED = { message: 'No.', extensions: { code: 'THROTTLED' } };
const beside = (data: object | null | undefined, ...path: string[]) => ({
  body: { data, errors: [path.length > 0 ? { ...THROTTLED, path } : THROTTLED] },
});
const FAILED = { kind: 'failure' };
const ANSWERED = { kind: 'answer' };

test.each<[string, Answered, object]>([
  ['has a negative time', failing({ extensions: { retryAfter: -1 } }), ANSWERED],
  ['has no code', failing({ message: 'Rate limit exceeded (429)' }), ANSWERED],
  ['has another code', failing({ extensions: { code: 'NOT_FOUND' } }), ANSWERED],
  ['has data beside it', beside({ a: 1, b: null }, 'b'), ANSWERED],
  ['has only null beside it', beside({ a: null, b: null }, 'b'), FAILED],
  ['has no data', beside(undefined), FAILED],
  ['has no path', beside(null), FAILED],
])(
  'a limit fails the whole request, or is a part of its answer: an error that %s',
  (_, answer, expected) => {
    expect(read(answer)).toMatchObject(expected);
  },
);

test.each<[string, Reply, sent: number, wait: number]>([
  ['2 s', json({}, 429, { 'retry-after': '2' }), 2, 2_000],
  ['10 s, the longest wait', json({}, 429, { 'retry-after': '10' }), 2, 10_000],
  ['an error', json({ errors: [THROTTLED] }), 2, 100],
  ['5 s beside 503', json({}, 503, { 'retry-after': '5' }), 2, 5_000],
  ['503 with GraphQL', json({ errors: [{ message: 'Down.' }] }, 503), 2, 100],
  ['11 s', json({}, 429, { 'retry-after': '11' }), 1, 0],
])('a limited rate is obeyed for up to 10 s, and otherwise reported: %s', async (...row) => {
  const [, reply, sent, wait] = row;
  await using gateway = await startGatewayOverService();
  gateway.service.answer(reply, honest);
  const { errors } = await gateway.ask(PERSONS);
  expect(gateway.service.received).toHaveLength(sent);
  if (sent === 1) expect(errors).toMatchObject([{ extensions: { retryAfter: 11 } }]);
  else expect([errors, gateway.waits[0]! >= wait]).toEqual([undefined, true]);
});

test('no attempt begins later than 30 s after the first, however long the others took', async () => {
  const sender = senderWith({ priority: 'drain' });
  const clock = new ManualClock();
  const begun: number[] = [];
  const start = clock.elapsed();
  const sleep = async (ms: number, signal?: AbortSignal) => {
    expect(signal).toBe(sender.signal);
    clock.jump(ms);
  };
  const { elapsed, now, timer } = clock;
  const attempts = retry({ elapsed, now, timer, sleep }, () => 1);
  const error = codedError('UPSTREAM_UNREACHABLE', 'No.');
  const send = attempts(async () => {
    begun.push(elapsed() - start);
    clock.jump(6_000);
    return { kind: 'failure', isTemporary: true, retryAfterMs: 7_000, error };
  });
  expect(await send(query('x'), sender)).toMatchObject({ error });
  // The random part does not make the wait longer than 10 s.
  expect(begun).toEqual([0, 16_000]);
});
