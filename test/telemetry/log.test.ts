import { Writable } from 'node:stream';
import { GraphQLError } from 'graphql';
import pino from 'pino';
import { expect, test, vi } from 'vitest';
import { createLog, withoutDetails } from '../../src/telemetry/log.ts';

const HOSTILE = 'a\u001B[31mb\nINFO: forged\rc "d" \\';
const FAILURE = new Error(HOSTILE);

test.each([true, false])(
  'readable lines contain no control characters either, apart from their own colours (%j), and no text looks like another line',
  async (colors) => {
    const text = await written({ isJson: false, colors });
    // oxlint-disable-next-line no-control-regex -- the colours
    expect(controlsIn(text.replaceAll(/\u001B\[\d+m/g, ''))).toEqual([]);
    expect(text).toContain('\\u001b[31m');
    expect(text.split('\n').filter((line) => /^\W*INFO: forged/.test(line))).toEqual([]);
    expect(text).toMatch(/^ +at .*log\.test/m);
  },
);

test('the log of another program gets the message of an error, and no value that the error holds', () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const extensions = { code: 'WRONG', value: 'Ada Lovelace' };
  const cause = new Error('because');
  const err = Object.assign(new GraphQLError('wrong', { extensions }), { cause });
  withoutDetails(log).error({ err }, 'failed');
  expect(JSON.parse(lines[0]!)).toMatchObject({
    err: { message: 'wrong', code: 'WRONG', cause: { message: 'because' } },
  });
  expect(lines[0]).not.toContain('Lovelace');
  // A code says enough: no stack.
  expect(lines[0]).not.toContain('    at ');
  const full = Object.assign(new Error('full', { cause }), { code: 'ENOSPC', path: 'secret' });
  withoutDetails(log).error({ err: full }, 'failed');
  withoutDetails(log).error({ err: 'no error' }, 'failed');
  const [, ofSystem, ofText] = lines.map((line) => (JSON.parse(line) as { err: unknown }).err);
  expect(ofSystem).toEqual({
    type: 'Error',
    message: 'full',
    code: 'ENOSPC',
    stack: expect.stringMatching(/^ +at .*log\.test.*\n +at /),
    cause: { type: 'Error', message: 'because' },
  });
  expect(ofText).toBe('no error');
});

test('lines are written together, and the remaining ones in their order at the end', async () => {
  const { writes, destination } = recorder();
  const log = await createLog({ level: 'info', destination, isJson: true, colors: false });
  log.info('one');
  log.warn('two');
  expect(writes).toEqual([]);
  await vi.waitFor(() => expect(writes.map(messagesOf)).toEqual([['one', 'two']]));
  log.info('three');
  log.flush();
  log.flush();
  expect(writes.flatMap(messagesOf)).toEqual(['one', 'two', 'three']);
});

function messagesOf(lines: string): string[] {
  return lines
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { msg: string }).msg);
}

async function written(options: { isJson: boolean; colors: boolean }): Promise<string> {
  const { writes, destination } = recorder();
  const log = await createLog({ level: 'info', destination, ...options });
  log.info({ path: HOSTILE }, HOSTILE);
  log.error({ err: FAILURE }, HOSTILE);
  log.flush();
  return writes.join('');
}

function recorder() {
  const writes: string[] = [];
  const destination = new Writable({
    write: (chunk, _encoding, done) => {
      writes.push(String(chunk));
      done();
    },
  });
  return { writes, destination };
}

/** All except line feeds. */
function controlsIn(text: string): string[] {
  // oxlint-disable-next-line no-control-regex -- it matches them on purpose
  return text.match(/[\u0000-\u0009\u000B-\u001F]/g) ?? [];
}
