import { systemClock } from '../../src/clock.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createErrorPolicy } from '../../src/http/error-policy.ts';
import type { Stage } from '../../src/http/exchange.ts';
import type { Body, Reply } from '../../src/http/reply.ts';
import type { Handler } from '../../src/http/handler.ts';
import { listen } from '../../src/http/listen.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { recordingLog } from '../support/gateway/recording-log.ts';
import { handlerOf } from '../support/gateway/stages.ts';

const BUG = 'Nobody expected this.';
/** What no answer has. */
const notText = {} as string;

describe.each([
  ['over a socket', overSocket],
  ['through fetch', throughFetch],
])('an answer %s that cannot be written to its end', (_way, send) => {
  test.each<[string, Body]>([['a large piece', ['x'.repeat(1_000_000), notText]]])(
    'is an error with status 500 if nothing of it was sent: %s',
    async (_fault, body) => {
      const { handler, logged } = replying(() => body);
      const response = await send(handler, 'application/json');
      expect(response.status).toBe(500);
      expect(await response.json()).toEqual({ errors: [maskedAs(logged)] });
      expect(response.headers.get('x-request-id')).toBe('mine');
      await expect
        .poll(() => logged.filter(({ msg }) => msg === 'request'))
        .toMatchObject([{ requestId: 'mine', status: 500, code: 'INTERNAL_SERVER_ERROR' }]);
    },
  );

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
    errors: createErrorPolicy({ clock: systemClock, log }),
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
