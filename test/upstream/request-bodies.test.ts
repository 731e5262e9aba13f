import { setImmediate } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { expect, test } from 'vitest';
import { codeOf } from '../../src/errors.ts';
import { ByteLimit } from '../../src/memory/byte-limit.ts';
import { Slots } from '../../src/queue.ts';
import { openUpstream } from '../../src/upstream/upstream.ts';
import { ManualClock } from '../support/random/manual-clock.ts';
import { query, senderWith } from './held-requests.ts';

/** A service that never answers. */
const SILENT = { dispatch: () => true } as unknown as Dispatcher;
const NOBODY = { value: 'token' };

test('each request of an operation counts once, also while it waits for others of the operation, until its caller leaves', async () => {
  const bodies = new ByteLimit(500_000);
  const { send } = openUpstream({
    baseUrl: 'http://service.example',
    agent: 'test',
    connect: () => SILENT,
    concurrency: 8,
    timeoutMs: 30_000,
    clock: new ManualClock(),
    tokens: {
      token: () => NOBODY,
      afterRefusal: async () => undefined,
      accepted: () => {},
      refused: () => {},
    },
    bodies,
  });
  const leaving = new AbortController();
  const sender = senderWith({ slots: new Slots(() => 1), signal: leaving.signal });
  const ask = (letter: string) => send(query(letter.repeat(100_000)), sender);
  const waiting = Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map(ask));
  await setImmediate();
  expect(bodies.bytes).toBe(500_000);
  expect(await ask('f').catch(codeOf)).toBe('RATE_LIMITED');
  expect(bodies.bytes).toBe(500_000);
  leaving.abort(new Error('left'));
  await waiting;
  expect(bodies.bytes).toBe(0);
});
