import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openRescue } from '../../../src/tokens/store/rescue.ts';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import {
  answersTo,
  forgetAnswers,
  openAnswerFiles,
  type UnreadAnswer,
} from '../../../src/tokens/store/unread-answers.ts';
import { recordingLog } from '../../support/gateway/gateway.ts';
import { folder } from './sqlite-support.ts';

const KEY = Buffer.alloc(32, 7);
const HEAD = { set: 'the set', generation: 3 };

function start(keys: readonly Uint8Array[] = []) {
  const owner = { host: 'host', pid: 1, lives: () => true };
  const rescue = { directory: join(folder(), 'rescue'), sealer: createSealer(keys), owner };
  const files = openAnswerFiles(rescue);
  onTestFinished(() => files.close());
  return { rescue, files };
}

function unread(body: string, at = 1, more: Partial<UnreadAnswer> = {}): UnreadAnswer {
  return {
    ...HEAD,
    attempt: `attempt-${at}`,
    at,
    home: { store: 'the store', storeId: 'the store', baseUrl: 'https://recruiting.test' },
    answer: { status: 503, contentEncoding: 'br', body: Buffer.from(body) },
    namesPair: false,
    ...more,
  };
}

test('an answer is returned byte for byte', () => {
  const { rescue, files } = start([KEY]);
  const all = Buffer.from(Array.from({ length: 65_536 }, (_, index) => index % 256));
  const came = unread('', 1, { answer: { status: 200, contentEncoding: undefined, body: all } });
  const path = files.keep(came);
  const [kept, ...others] = answersTo(rescue, HEAD);
  expect(others).toEqual([]);
  expect(kept!.path).toBe(path);
  expect(kept!.unread).toMatchObject({ ...HEAD, attempt: 'attempt-1', home: came.home });
  expect(kept!.unread.answer.status).toBe(200);
  expect(kept!.unread.answer.body.equals(all)).toBe(true);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('an answer is encrypted, and cannot be read without the key', () => {
  const { rescue, files } = start([KEY]);
  const path = files.keep(unread('planted-secret'));
  const text = readFileSync(path, 'utf8');
  expect(text).not.toContain('planted');
  expect(text).not.toContain(Buffer.from('planted-secret').toString('base64'));
  expect(answersTo({ ...rescue, sealer: createSealer([Buffer.alloc(32, 8)]) }, HEAD)).toEqual([]);
  expect(answersTo(rescue, HEAD)).toHaveLength(1);
});

test('if a service never answers clearly, the first answers, the last ones and every one that names a pair are kept', () => {
  const { rescue, files } = start();
  for (let at = 1; at <= 40; at += 1) {
    files.keep(unread(`answer ${at}`, at, { namesPair: at === 20 }));
  }
  const kept = answersTo(rescue, HEAD).map((one) => one.unread.at);
  expect(kept).toHaveLength(32);
  expect(kept[0]).toBe(40);
  expect(kept).toContain(20);
  expect(kept.slice(-16)).toEqual(Array.from({ length: 16 }, (_, index) => 16 - index));
});

test('an answer to an earlier refresh token is removed once it is of no more use, and no other one is', () => {
  const { rescue, files } = start();
  files.keep(unread('earlier', 1, { generation: 2 }));
  files.keep(unread('of another set', 2, { set: 'another', generation: 1 }));
  files.keep(unread('ours', 3));
  forgetAnswers(rescue, HEAD);
  expect(answersTo(rescue, { ...HEAD, generation: 2 })).toEqual([]);
  expect(answersTo(rescue, { set: 'another', generation: 1 })).toHaveLength(1);
  expect(answersTo(rescue, HEAD)).toHaveLength(1);
});

test('an answer that cannot be written is kept in memory, and this is logged', async () => {
  const { rescue } = start();
  rmSync(rescue.directory, { recursive: true });
  writeFileSync(rescue.directory, 'no folder');
  const { log, logged } = recordingLog();
  const opened = openRescue(rescue, log);
  opened.keepAnswer(unread('held', 1));
  expect(opened.answersTo(HEAD).map((kept) => kept.unread.answer.body.toString())).toEqual([
    'held',
  ]);
  expect(opened.answersTo({ ...HEAD, generation: 4 })).toEqual([]);
  expect(logged.at(-1)).toMatchObject({ level: 60, status: 503, trouble: 'uncertain' });
  expect(JSON.stringify(logged)).not.toContain('held"');
  await opened.close();
});

test('a process that kept no answer leaves no file', () => {
  const { rescue, files } = start();
  expect(readdirSync(rescue.directory)).toHaveLength(1);
  files.close();
  expect(readdirSync(rescue.directory)).toEqual([]);
});
