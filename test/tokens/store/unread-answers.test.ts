import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openRescue } from '../../../src/tokens/store/rescue.ts';
import { createSealer } from '../../../src/tokens/store/seal.ts';
import type { UnreadAnswer } from '../../../src/tokens/store/sealed-file.ts';
import { recordingLog } from '../../support/gateway/recording-log.ts';
import { folder } from './sqlite-support.ts';

const KEY = Buffer.alloc(32, 7);
const HEAD = { set: 'the set', generation: 3 };

function start(keys: readonly Uint8Array[] = []) {
  const owner = { host: 'host', pid: 1, lives: () => true };
  const place = { directory: join(folder(), 'rescue'), sealer: createSealer(keys), owner };
  const { log, logged } = recordingLog();
  const rescue = openRescue(place, log);
  onTestFinished(() => rescue.close());
  return { place, rescue, log, logged };
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
  const { rescue } = start([KEY]);
  const all = Buffer.from(Array.from({ length: 65_536 }, (_, index) => index % 256));
  const came = unread('', 1, { answer: { status: 200, contentEncoding: undefined, body: all } });
  rescue.keepAnswer(came);
  const [kept, ...others] = rescue.answersTo(HEAD);
  expect(others).toEqual([]);
  expect(kept!.unread).toMatchObject({ ...HEAD, attempt: 'attempt-1', home: came.home });
  expect(kept!.unread.answer.status).toBe(200);
  expect(kept!.unread.answer.body.equals(all)).toBe(true);
  expect(statSync(kept!.path).mode & 0o777).toBe(0o600);
});

test('an answer is encrypted, and cannot be read without the key', () => {
  const { place, rescue, log } = start([KEY]);
  rescue.keepAnswer(unread('planted-secret'));
  const [kept] = rescue.answersTo(HEAD);
  const text = readFileSync(kept!.path, 'utf8');
  expect(text).not.toContain('planted');
  expect(text).not.toContain(Buffer.from('planted-secret').toString('base64'));
  const other = openRescue({ ...place, sealer: createSealer([Buffer.alloc(32, 8)]) }, log);
  onTestFinished(() => other.close());
  expect(other.answersTo(HEAD)).toEqual([]);
  expect(rescue.answersTo(HEAD)).toHaveLength(1);
});

test('if a service never answers clearly, the first answers, the last ones and every one that names a pair are kept', () => {
  const { rescue } = start();
  for (let at = 1; at <= 40; at += 1) {
    rescue.keepAnswer(unread(`answer ${at}`, at, { namesPair: at === 20 }));
  }
  const kept = rescue.answersTo(HEAD).map((one) => one.unread.at);
  expect(kept).toHaveLength(32);
  expect(kept[0]).toBe(40);
  expect(kept).toContain(20);
  expect(kept.slice(-16)).toEqual(Array.from({ length: 16 }, (_, index) => 16 - index));
});

test('an answer to an earlier refresh token is removed once it is of no more use, and no other one is', () => {
  const { rescue } = start();
  rescue.keepAnswer(unread('earlier', 1, { generation: 2 }));
  rescue.keepAnswer(unread('of another set', 2, { set: 'another', generation: 1 }));
  rescue.keepAnswer(unread('ours', 3));
  rescue.forgetAnswers(HEAD);
  expect(rescue.answersTo({ ...HEAD, generation: 2 })).toEqual([]);
  expect(rescue.answersTo({ set: 'another', generation: 1 })).toHaveLength(1);
  expect(rescue.answersTo(HEAD)).toHaveLength(1);
});

test('an answer that cannot be written is kept in memory, and this is logged', async () => {
  const { place, log, logged } = start();
  rmSync(place.directory, { recursive: true });
  writeFileSync(place.directory, 'no folder');
  const opened = openRescue(place, log);
  opened.keepAnswer(unread('held', 1));
  expect(opened.answersTo(HEAD).map((kept) => kept.unread.answer.body.toString())).toEqual([
    'held',
  ]);
  expect(opened.answersTo({ ...HEAD, generation: 4 })).toEqual([]);
  expect(logged.at(-1)).toMatchObject({ level: 60, status: 503, trouble: 'uncertain' });
  expect(JSON.stringify(logged)).not.toContain('held"');
  await opened.close();
});

test('a process that kept no answer leaves no file', async () => {
  const { place, rescue } = start();
  expect(readdirSync(place.directory)).toHaveLength(2);
  await rescue.close();
  expect(readdirSync(place.directory)).toEqual([]);
});
