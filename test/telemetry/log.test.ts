import { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { GraphQLError } from 'graphql';
import pino from 'pino';
import { expect, test, vi } from 'vitest';
import { createLog, withoutDetails } from '../../src/telemetry/log.ts';

const HOSTILE = 'a\u001B[31mb\nINFO: forged\rc "d" \\';

test.each([true, false])(
  'readable lines contain no control characters either, apart from their own colours (%j), and no text looks like another line',
  async (isTTY) => {
    const { writes, destination } = recorder();
    const terminal = Object.assign(destination, { isTTY });
    const log = await createLog({ level: 'info', destination: terminal, isJson: false });
    log.info({ path: HOSTILE }, 'served');
    log.error({ err: new Error(HOSTILE) }, 'failed');
    log.flush();
    const text = writes.join('');
    expect(stripVTControlCharacters(text)).not.toMatch(/[\p{Cc}--\n]/v);
    expect(text).toContain('\\u001b[31m');
    expect(text.split('\n').filter((line) => /^\W*INFO: forged/.test(line))).toEqual([]);
    expect(text).toMatch(/^ +at .*log\.test/m);
  },
);

const cause = new Error('because');
const extensions = { code: 'WRONG', value: 'Ada Lovelace' };
const FRAMES: unknown = expect.stringMatching(/^ +at .*log\.test.*\n +at /);

test.each<[string, Error, object]>([
  [
    'an error with a code, which says enough without a stack',
    Object.assign(new GraphQLError('wrong', { extensions }), { cause }),
    { type: 'GraphQLError', message: 'wrong', code: 'WRONG' },
  ],
  [
    'an error of the system',
    Object.assign(new Error('full', { cause }), { code: 'ENOSPC', path: 'secret' }),
    { type: 'Error', message: 'full', code: 'ENOSPC', stack: FRAMES },
  ],
])('the log of another program gets no value that an error holds: %s', (_, err, described) => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  withoutDetails(log).error({ err }, 'failed');
  const line = JSON.parse(lines[0]!) as { err: unknown };
  expect(line.err).toEqual({ ...described, cause: { type: 'Error', message: 'because' } });
});

test('lines are written together, and the remaining ones in their order at the end', async () => {
  const { writes, destination } = recorder();
  const log = await createLog({ level: 'info', destination, isJson: true });
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
