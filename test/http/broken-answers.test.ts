// Imports the engine's insides, and goes when the engine is replaced.
import { systemClock } from '../../src/clock.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import type {
  Payload as Written,
  PendingPart,
  WholeAnswer,
} from '../../src/answers/write-answer.ts';
import { codedError } from '../../src/errors.ts';
import { createDelivery } from '../../src/http/delivery.ts';
import { createErrorPolicy } from '../../src/http/error-policy.ts';
import type { Body, Reply, Stage } from '../../src/http/exchange.ts';
import type { Handler } from '../../src/http/handler.ts';
import { listen } from '../../src/http/listen.ts';
import type { CheckedOperation } from '../../src/operations/operations.ts';
import type { OperationPlan } from '../../src/plans/planner.ts';
import { RequestMemory } from '../../src/memory/byte-limit.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { gathered, partsOf, type Payload } from '../support/clients/multipart.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { handlerOf } from '../support/gateway/stages.ts';

const BUG = 'Nobody expected this.';
const list: PendingPart = { id: '0', path: ['people'], label: 'more', from: 1 };
const later: PendingPart = { id: '1', path: ['me'], label: undefined, from: undefined };
const ended: PendingPart = { id: '2', path: [], label: undefined, from: undefined };
const begun: Written = {
  first: { data: ['"people":[0],"me":{}'], errors: [], extensions: undefined },
  pending: [list, later, ended],
  hasNext: true,
};
const records: Written = {
  incremental: [
    { of: list, index: 1, count: 2, parts: ['1,2'], errors: [] },
    { of: ended, parts: ['"a":1'], errors: [] },
  ],
  hasNext: true,
};
/** What no type allows in an answer. */
const notText = {} as string;
const broken: Written = {
  incremental: [{ of: later, parts: ['"a":', notText], errors: [] }],
  hasNext: true,
};

describe.each([
  ['over a socket', overSocket],
  ['through fetch', throughFetch],
])('an answer %s that cannot be written to its end', (_way, send) => {
  describe('in parts', () => {
    test.each<[string, () => AsyncGenerator<Written>]>([
      [
        'an error while the next part is read',
        async function* () {
          yield begun;
          yield records;
          throw new Error(BUG);
        },
      ],
      [
        'a part that cannot be written',
        async function* () {
          yield begun;
          yield records;
          yield broken;
        },
      ],
    ])('ends all open parts with the error: %s', async (_fault, stream) => {
      const { handler, logged } = answering({ stream });
      const response = await send(handler, 'multipart/mixed');
      const payloads = await gathered(partsOf(response));
      const error = maskedAs(logged);
      expect(payloads).toEqual([
        { data: { people: [0], me: {} }, hasNext: true },
        {
          incremental: [
            { items: [1, 2], path: ['people', 1], label: 'more' },
            { data: { a: 1 }, path: [] },
          ],
          hasNext: true,
        },
        {
          incremental: [
            { items: null, path: ['people', 3], label: 'more', errors: [error] },
            { data: null, path: ['me'], errors: [error] },
          ],
          hasNext: false,
        },
      ]);
    });

    test('ends all open parts with a coded error too', async () => {
      const { handler } = answering({ stream: refusedLater });
      const response = await send(handler, 'multipart/mixed');
      const [, last] = await gathered(partsOf(response));
      expect(JSON.stringify(last).match(/"code":"RATE_LIMITED"/g)).toHaveLength(3);
      expect(last!.hasNext).toBe(false);
    });

    test('is refused if that is its first part', async () => {
      const first = { ...begun.first!, data: [notText] };
      const stream = async function* (): AsyncGenerator<Written> {
        yield { ...begun, first };
      };
      const { handler, logged } = answering({ stream });
      const response = await send(handler, 'multipart/mixed, application/json;q=0.1');
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      const { errors } = (await response.json()) as Payload;
      expect(errors).toEqual([maskedAs(logged)]);
    });
  });

  test.each<[string, Body | undefined, WholeAnswer | undefined]>([
    ['an answer', undefined, { ...begun.first!, data: [notText] }],
    ['a piece', ['{"data":', notText], undefined],
    ['a large piece', ['x'.repeat(1_000_000), notText], undefined],
  ])('is an error with status 500 if nothing of it was sent: %s', async (_fault, body, whole) => {
    const { handler, logged } = whole ? answering({ whole }) : replying(() => body!);
    const response = await send(handler, 'application/json');
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({ errors: [maskedAs(logged)] });
    expect(response.headers.get('x-request-id')).toBe('mine');
    await expect
      .poll(() => logged.filter(({ msg }) => msg === 'request'))
      .toMatchObject([{ requestId: 'mine', status: 500, code: 'INTERNAL_SERVER_ERROR' }]);
  });

  test('is an error with status 500 if its headers cannot be written', async () => {
    const { handler, logged } = replying(() => 'x', { 'x-broken': 'line\nbreak' });
    const response = await send(handler, 'application/json');
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({ errors: [maskedAs(logged)] });
  });

  test.each<[string, () => AsyncGenerator<Body>]>([
    [
      'an unexpected error',
      async function* () {
        yield 'begun';
        throw new Error(BUG);
      },
    ],
    [
      'an error that has a code',
      async function* () {
        yield 'begun';
        throw codedError('RATE_LIMITED', BUG);
      },
    ],
    [
      'an abort of the gateway itself',
      async function* () {
        yield 'begun';
        throw new DOMException(BUG, 'AbortError');
      },
    ],
    [
      'a piece that is not text',
      async function* () {
        yield 'begun';
        yield [notText];
      },
    ],
  ])('is cut off and logged if something was sent already: %s', async (fault, body) => {
    const { handler, logged, work } = replying(body);
    const reading = send(handler, 'application/json').then((response) => response.text());
    await expect(reading).rejects.toThrow(/terminated|fetch failed|Report this id to its operator/);
    await expect.poll(() => logged.filter(({ msg }) => msg === 'request')).toHaveLength(1);
    const reason = fault.startsWith('a piece') ? '' : BUG;
    expect(logged).toMatchObject([
      {
        level: 50,
        msg: 'unexpected error',
        requestId: 'mine',
        err: { message: expect.stringMatching(`An answer was cut off.*: .*${reason}`) as string },
      },
      { msg: 'request', requestId: 'mine', status: 200, code: 'INTERNAL_SERVER_ERROR' },
    ]);
    expect(work.signal!.aborted).toBe(true);
  });
});

async function* refusedLater(): AsyncGenerator<Written> {
  yield begun;
  throw codedError('RATE_LIMITED', 'Try again.');
}

interface Answering {
  readonly stream?: () => AsyncGenerator<Written>;
  readonly whole?: WholeAnswer;
}

/** A handler that answers every request in this way, and the lines it logs. */
function answering({ stream, whole }: Answering) {
  const { log, logged } = recordingLog();
  const errors = createErrorPolicy({ clock: systemClock, memory: new RequestMemory(1e8), log });
  const plan = {
    answer: () => Promise.resolve(whole),
    stream: () => stream?.(),
  } as Partial<OperationPlan> as OperationPlan;
  const operation = { plan, isIncremental: stream !== undefined };
  const { answer } = createDelivery({
    planner: { createCall: () => ({ end: () => {} }) as never, admit: () => ({}) },
    mask: errors.mask,
  });
  return handling(
    (exchange) => answer(operation as unknown as CheckedOperation<OperationPlan>, exchange),
    { log, logged },
  );
}

/** A handler that replies with this body, and the signal of what it does. */
function replying(
  body: () => NonNullable<Reply['body']>,
  headers: Record<string, string> = { 'content-type': 'text/plain' },
) {
  const work: { signal?: AbortSignal } = {};
  const stage: Stage = ({ signal }) => {
    work.signal = signal;
    return { status: 200, headers, body: body() };
  };
  return { ...handling(stage, recordingLog()), work };
}

function handling(stage: Stage, { log, logged }: ReturnType<typeof recordingLog>) {
  const handler = handlerOf([stage], {
    errors: createErrorPolicy({ clock: systemClock, memory: new RequestMemory(1e8), log }),
    telemetry: createTelemetry({ version: '1', log }).requests(),
  });
  return { handler, logged };
}

/** The error for callers that belongs to the only one that was logged. */
function maskedAs(logged: readonly Record<string, unknown>[]) {
  const lines = logged.filter(({ msg }) => msg === 'unexpected error');
  expect(lines).toMatchObject([{ level: 50, errorId: expect.any(String) }]);
  const id = lines[0]!['errorId'] as string;
  return {
    message: expect.stringContaining(id) as string,
    extensions: { code: 'INTERNAL_SERVER_ERROR', id },
  };
}

async function overSocket(handler: Handler, accept: string, query?: string): Promise<Response> {
  const server = await listen(handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  return fetch(`${server.url}/graphql`, requestOf(accept, query));
}

function throughFetch(handler: Handler, accept: string, query?: string): Promise<Response> {
  return handler.fetch('http://localhost/graphql', requestOf(accept, query));
}

function requestOf(accept: string, query = ''): RequestInit {
  return {
    method: 'POST',
    headers: { accept, 'content-type': 'application/json', 'x-request-id': 'mine' },
    body: JSON.stringify({ query }),
  };
}
