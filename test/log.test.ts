import { Writable } from 'node:stream';
import { GraphQLError } from 'graphql';
import pino from 'pino';
import { expect, test, vi } from 'vitest';
import { createLog, withoutDetails } from '../src/telemetry/log.ts';
import { blockWith } from './support/docs/documents.ts';

const HOSTILE = 'a\u001B[31mb\nINFO: forged\r\u007F\u009B2Jc\u2028d';
const FAILURE = new Error(HOSTILE);

test('JSON lines contain no control characters, and parse to what was logged', async () => {
  const text = await written({ format: 'pino', colors: false });
  expect(controlsIn(text)).toEqual([]);
  const lines = text.trimEnd().split('\n');
  expect(lines).toHaveLength(2);
  expect(JSON.parse(lines[0]!)).toMatchObject({ path: HOSTILE, msg: HOSTILE });
  expect(JSON.parse(lines[1]!)).toMatchObject({ err: { message: HOSTILE }, msg: HOSTILE });
});

test.each([true, false])(
  'readable lines contain no control characters either, apart from their own colours (%j), and no text looks like another line',
  async (colors) => {
    const text = await written({ format: 'readable', colors });
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
  const err = new GraphQLError('wrong', { extensions: { code: 'WRONG', value: 'Ada Lovelace' } });
  withoutDetails(log).error({ err }, 'failed');
  expect(JSON.parse(lines[0]!)).toMatchObject({ err: { message: 'wrong', code: 'WRONG' } });
  expect(lines[0]).not.toContain('Lovelace');
});

test('lines for a collector have levels as words, RFC 3339 times, and the causes of an error in one line', async () => {
  const { writes, destination } = recorder();
  const log = await createLog({ level: 'trace', destination, format: 'json', colors: false });
  const reset = Object.assign(new Error('read\nECONNRESET'), { code: 'ECONNRESET' });
  const err = new Error('no store', { cause: new TypeError('no connection', { cause: reset }) });
  const before = Date.now();
  log.child({ requestId: 'a' }).error({ err }, 'failed');
  for (const level of ['fatal', 'warn', 'info', 'debug', 'trace'] as const) log[level](level);
  log.error({ err: new Error('alone') }, 'failed');
  const lines = writes
    .join('')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.map(({ level }) => level)).toEqual([
    'error',
    'fatal',
    'warn',
    'info',
    'debug',
    'trace',
    'error',
  ]);
  for (const { time } of lines) {
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Date.parse(String(time))).toBeGreaterThanOrEqual(before);
  }
  expect(lines[0]).toMatchObject({
    requestId: 'a',
    err: {
      message: 'no store',
      stack: expect.stringContaining('log.test'),
      cause: 'TypeError: no connection, caused by Error: read ECONNRESET (ECONNRESET)',
    },
  });
  expect(lines.at(-1)!['err']).not.toHaveProperty('cause');
});

test('the line for a collector in docs/telemetry.md is one that is written', async () => {
  const { writes, destination } = recorder();
  const log = await createLog({ level: 'info', destination, format: 'json', colors: false });
  const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  const cause = new Error('the connection was lost', { cause: reset });
  const err = new Error('the store cannot be read', { cause });
  log.error({ err }, 'the tokens cannot be read');
  const documented = JSON.parse(blockWith('docs/telemetry.md', 'caused by'));
  documented.err.stack = expect.stringMatching(/^ {4}at /);
  for (const name of ['time', 'pid', 'hostname']) {
    documented[name] = expect.any(documented[name].constructor);
  }
  expect(JSON.parse(writes[0]!)).toEqual(documented);
});

test('lines are written together, and with the next warning at the latest', async () => {
  const { writes, destination } = recorder();
  const log = await createLog({ level: 'info', destination, format: 'pino', colors: false });
  log.info('one');
  log.info('two');
  expect(writes).toEqual([]);
  await vi.waitFor(() => expect(writes).toHaveLength(1));
  expect(messagesOf(writes[0]!)).toEqual(['one', 'two']);
  log.info('three');
  log.warn('four');
  expect(messagesOf(writes[1]!)).toEqual(['three', 'four']);
});

test('at the end, the lines that are not written yet are written in their order', async () => {
  const { writes, destination } = recorder();
  const log = await createLog({ level: 'info', destination, format: 'pino', colors: false });
  log.info('one');
  log.info('two');
  log.flush();
  log.flush();
  expect(writes.flatMap(messagesOf)).toEqual(['one', 'two']);
});

function messagesOf(lines: string): string[] {
  return lines
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { msg: string }).msg);
}

async function written(options: {
  format: 'readable' | 'pino' | 'json';
  colors: boolean;
}): Promise<string> {
  const { writes, destination } = recorder();
  const log = await createLog({ level: 'info', destination, ...options });
  log.info({ path: HOSTILE }, HOSTILE);
  log.error({ err: FAILURE }, HOSTILE);
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
  return text.match(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u2028\u2029]/g) ?? [];
}
