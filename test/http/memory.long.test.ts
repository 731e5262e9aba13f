import { getEventListeners, once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { parse } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { expect, onTestFinished, test } from 'vitest';
import { createCall, type CallParts } from '../../src/engine/call.ts';
import { AnswerMemory } from '../../src/memory/answer-memory.ts';
import type { Reply, ServiceOptions } from '../service/service.ts';
import { openBare, postBare, standstill } from '../support/clients/bare-client.ts';
import { all, ask as send, partsOf, putTogether } from '../support/clients/multipart.ts';
import { codesOf } from '../support/gateway/codes.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import type { TestGatewayOptions } from '../support/gateway/gateway.ts';
import { after, altered, honest, json, silence, unfinished } from '../service/replies.ts';
import { post } from '../support/clients/post.ts';
import { startFront } from '../support/gateway/front.ts';

// What requests and answers hold, while their clients read slowly, leave, or ask for too much.

const MEGABYTE = 1024 * 1024;
/** More than the buffers of a socket hold, and less than the largest answer of the service. */
const LARGE = 'x'.repeat(8_000_000);
const large = json({ data: { persons: { items: [{ firstName: LARGE }] } } });
const PAGE = '{ persons { items { firstName } } }';
const STREAM = '{ allPersons @stream { id firstName } }';
/** Polls for longer than the default second: megabytes are copied meanwhile, and other tests run. */
const LONG = { timeout: 20_000 };

async function start(
  options: TestGatewayOptions = {},
  service: ServiceOptions = { persons: 3_000 },
) {
  const front = await startFront(service, options);
  onTestFinished(() => front[Symbol.asyncDispose]());
  const metric = async (name: string) => (await front.samples()).get(`recruiting_${name}`);
  return {
    ...front,
    /** Sends an operation as a client that reads only when a test says so. */
    open: (query: string) => {
      const socket = postBare(front, query, query.includes('@') ? 'multipart/mixed' : '*/*');
      onTestFinished(() => void socket.destroy());
      return socket;
    },
    answerBytes: () => metric('answer_bytes'),
    requestBytes: () => metric('request_bytes'),
    drains: () => metric('drains_running'),
    waiting: () => metric('drains_waiting'),
  };
}

test('unread answers count in ANSWER_BYTES, and further answers are refused', async () => {
  const { service, open, answerBytes } = await start({ config: { answerBytes: 8_300_000 } });
  service.answer(large);
  const first = open(`query A ${PAGE}`);
  await once(first, 'data');
  first.pause();
  expect(await answerBytes()).toBeGreaterThan(LARGE.length);
  const [refusal] = (await once(open(`query B ${PAGE}`), 'data')) as [Buffer];
  expect(refusal.toString()).toContain('RATE_LIMITED');
  first.destroy();
  await expect.poll(answerBytes, LONG).toBe(0);
});

test('what equal drains share is held once, and nothing of it afterwards', async () => {
  // One of these answers has two thirds of that.
  const { ask, answerBytes } = await start({ config: { answerBytes: 300_000 } });
  const drains = [1, 2, 3].map(() => ask('{ allPersons { id firstName } }'));
  for (const { errors } of await Promise.all(drains)) expect(errors).toBeUndefined();
  expect(await answerBytes()).toBe(0);
});

test.each<[string, string, [Reply, ...Reply[]], Plugin[]?]>([
  ['before the service has answered', PAGE, [silence]],
  ['while the service answers', PAGE, [unfinished]],
  ['while it reads', PAGE, [large]],
  ['while it reads a drain', '{ allPersons { id firstName } }', [honest]],
  ['while it waits for a page of a drain', '{ allPersons { id } }', [honest, honest, silence]],
  ['while it reads a stream', STREAM, [honest]],
  ['while it waits for a page of a stream', STREAM, [honest, honest, silence]],
  ['…, beside a plugin', STREAM, [honest, honest, silence], [everyHook()]],
])(
  'nothing is held or sent for a client that leaves %s',
  async (_, query, replies, plugins = []) => {
    const config = { answerBytes: 8_300_000, upstreamConcurrency: 1 };
    const { service, open, ask, answerBytes, drains, logged } = await start({ plugins, config });
    service.answer(...replies, honest);
    const isWaiting = [silence, unfinished].includes(replies.at(-1)!);
    const socket = open(query);
    if (isWaiting) {
      socket.resume();
      await service.arrived(replies.length);
    } else await once(socket, 'data');
    socket.destroy();
    if (isWaiting) {
      // The only slot is free again, and the aborted request is not sent a second time.
      expect(await service.received.at(-1)!.over).toBe('cut');
      expect((await ask('{ persons { items { id } } }')).errors).toBeUndefined();
      expect(service.received).toHaveLength(replies.length + 1);
    }
    await expect.poll(answerBytes, LONG).toBe(0);
    await expect.poll(drains).toBe(0);
    expect(logged.filter(({ level }) => Number(level) > 30)).toEqual([]);
  },
);

test('a stream goes on for others when a client leaves, and ends with the last one', async () => {
  // So many that the walk does not end before the client leaves.
  const persons = 20_000;
  const gateway = await start({}, { persons });
  const begun = async () => {
    const parts = partsOf(await send(gateway, '{ allPersons @stream { id } }'));
    await parts.next();
    await parts.next();
    return parts;
  };
  const [leaving, staying] = await Promise.all([begun(), begun()]);
  await leaving.return();
  let pages = 0;
  for await (const { incremental } of staying) if (incremental) pages += 1;
  expect(pages).toBeGreaterThan(persons / 50 - 2);
  // One walk for both: each of its own would be as many pages again.
  expect(gateway.service.received.length).toBeLessThan(1.5 * (persons / 50));
  const last = await begun();
  expect(await gateway.drains()).toBe(1);
  await last.return();
  await expect.poll(gateway.drains).toBe(0);
  expect(gateway.logged.filter(({ code }) => code === 'LEFT')).toHaveLength(2);
});

test('a drain that waits for its turn goes on for others when the caller who began it leaves', async () => {
  const { ask, service, waiting } = await start({ config: { maxDrains: 1 } });
  const gate = Promise.withResolvers<void>();
  service.answer(after(gate.promise, honest));
  const running = ask('{ allPersons { firstName } }');
  await service.arrived(1);
  const leaving = new AbortController();
  const [first, second] = [{ signal: leaving.signal }, {}].map((init) =>
    ask('{ allPersons { id } }', {}, init),
  );
  await expect.poll(waiting).toBe(1);
  // The second one joins the walk of the first one in these turns of the event loop.
  for (let turn = 0; turn < 500; turn += 1) await setImmediate();
  leaving.abort();
  await expect(first).rejects.toThrow('abort');
  gate.resolve();
  for (const answer of [running, second]) expect((await answer)!.errors).toBeUndefined();
});

test('a client that stops reading pauses its walk, of large pages after 16 MB, and ends it by leaving', async () => {
  const { ask, service, open } = await start({ config: { maxDrains: 1 } }, { persons: 1_400 });
  const firstName = 'x'.repeat(100_000);
  const largePages = altered(({ data }) => {
    for (const item of data['persons']!.items)
      if ('firstName' in item) Object.assign(item, { firstName });
  });
  service.answer(largePages);
  // Its pages are known, so that the next walk reads several at the same time.
  await ask('{ allPersons { id } }');
  const known = service.received.length;
  const requests = () => service.received.length - known;
  const socket = open('{ allPersons @stream { firstName } }');
  await once(socket, 'data');
  socket.pause();
  await standstill(requests);
  // Eight in flight while their size is not known, and those that the buffers of the connection hold.
  const stalled = requests();
  expect(stalled).toBeLessThan(12);
  socket.resume();
  await expect.poll(requests, LONG).toBeGreaterThan(stalled);
  socket.pause();
  await standstill(requests);
  const before = requests();
  socket.destroy();
  // The only slot for walks is free again. The previous walk, if it had continued, would have requested more pages.
  const { data } = await ask<{ allPersons: unknown[] }>('{ allPersons(limit: 99) { id } }');
  expect(data.allPersons).toHaveLength(99);
  expect(requests()).toBeLessThan(before + 5);
});

/** Five fields with long names, so that records are large in an answer and not in the service. */
const WIDE = Array.from({ length: 5 }, (_, at) => `${'n'.repeat(200)}${at}: firstName`).join(' ');
const WIDE_STREAM = `{ allPersons(limit: 600) @stream { ${WIDE} } }`;

/** Reads the values of an answer, which take more memory than its text. */
const reader: Plugin = { onExecute: () => ({ onExecuteDone: () => {} }) };

test.each<[string, string, isRefused?: boolean, Plugin[]?]>([
  ['a small drain whose values a plugin reads', '{ allPersons { id } }', true, [reader]],
  ['nothing, if it reads none', '{ allPersons { id } }', false],
  ['a drain', `{ allPersons(limit: 600) { ${WIDE} } }`],
  [
    'a connection, of which no list is returned either',
    `{ personsConnection(first: 400) { edges { node { id ${WIDE} } } nodes { id } } }`,
  ],
  [
    'records that are found in a list',
    `query ($of: [_Any!]!) { _entities(representations: $of) { ... on Person { ${WIDE} } } }`,
  ],
  ['nothing, if the records are streamed', WIDE_STREAM, false],
])(
  'an answer above ANSWER_BYTES is refused, and not held: %s',
  async (_, query, isRefused = true, plugins = []) => {
    const gateway = await start({ config: { answerBytes: 60_000 }, plugins }, { persons: 600 });
    const { service, ask, answerBytes } = gateway;
    const of = service.persons.all().map(({ id }) => ({ __typename: 'Person', id }));
    const parts = await all(gateway, query, { of });
    const written = JSON.stringify(parts);
    expect(/would be larger than 60000 bytes.*OPERATION_TOO_COMPLEX/.test(written)).toBe(isRefused);
    if (!isRefused) expect(putTogether(parts)!['allPersons'] as unknown[]).toHaveLength(600);
    expect(written).not.toMatch(/"(?:nodes|edges)"/);
    // A page that is too large is not narrowed down to its records.
    expect(service.received.length).toBeLessThan(40);
    expect(await answerBytes()).toBe(0);
    expect((await ask(PAGE)).errors).toBeUndefined();
  },
);

test('requests that do not end take a limited part of the memory, and small ones are accepted all the same', async () => {
  const config = { maxBodyBytes: 5 * MEGABYTE, requestBytes: 16 * MEGABYTE };
  const gateway = await start({ config });
  const { url } = gateway;
  const size = 4 * MEGABYTE;
  const head =
    'POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n' +
    `content-length: ${size}\r\n\r\n`;
  const incomplete = Array.from({ length: 5 }, () =>
    openBare({ url }, head.padEnd(head.length + size - 1)),
  );
  const [refusal] = (await Promise.race(incomplete.map((each) => once(each, 'data')))) as [Buffer];
  expect(refusal.toString()).toMatch(/^HTTP\/1.1 429 Too Many Requests[^]*RATE_LIMITED/);
  // Now the others have arrived, and leave room for four bytes.
  await expect.poll(gateway.requestBytes, LONG).toBe(4 * (size - 1));
  const ask = async (body: string) => (await fetch(`${url}/graphql`, post(body))).json();
  const small = JSON.stringify({ query: '{ __typename }' });
  expect(await ask(small)).toMatchObject({ data: {} });
  for (const socket of incomplete) socket.destroy();
  const tooLarge = post(' '.repeat(6 * MEGABYTE));
  for (let sent = 0; sent < 3; sent += 1) {
    expect((await gateway.fetch('/graphql', tooLarge)).status).toBe(413);
  }
  // Nothing of them counts any more, and nothing counts less than nothing.
  await expect.poll(gateway.requestBytes, LONG).toBe(0);
  await expect.poll(() => ask(small.padStart(size)), LONG).toMatchObject({ data: {} });
});

test('the bodies of operations that wait take memory of requests', async () => {
  const config = { requestBytes: MEGABYTE, maxBodyBytes: MEGABYTE };
  const { ask, service } = await start({ config });
  const gate = Promise.withResolvers<void>();
  service.answer(after(gate.promise, honest));
  const query = 'query ($after: String) { persons(after: $after) { items { id } } }';
  const askWith = (letter: string) => ask(query, { after: letter.repeat(0.6 * MEGABYTE) });
  const waiting = askWith('a');
  await service.arrived(1);
  expect(codesOf(await askWith('b'))).toEqual(['RATE_LIMITED']);
  gate.resolve();
  await waiting;
  expect(JSON.stringify(await askWith('c'))).not.toContain('RATE_LIMITED');
});

test('nothing is held of what the program around the gateway executes, nor by its signal', async () => {
  const { gateway, answerBytes, drains } = await start({}, { persons: 600 });
  const { signal } = new AbortController();
  const execute = (query: string) => gateway.executor({ document: parse(query), signal });
  const expectNothingHeld = async () => {
    for (const held of [answerBytes, drains]) await expect.poll(held).toBe(0);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  };
  for (const query of [PAGE, `{ allPersons { ${WIDE} } }`, WIDE_STREAM]) {
    expect(await execute(query)).not.toHaveProperty('errors');
    await expectNothingHeld();
  }
});

test('nothing counts of an answer whose caller has left, and what another shares with it still does', () => {
  const memory = new AnswerMemory(MEGABYTE);
  const page = {};
  const parts = { memory, config: { drainMaxItems: 1 } } as CallParts;
  const origin = { address: '', cause: undefined, signal: new AbortController().signal };
  const open = () => createCall(parts, { values: {}, sent: {} }, origin);
  const [leaving, other] = [open(), open()];
  for (const call of [leaving, other]) call.hold(page, 100_000);
  leaving.end();
  leaving.hold({}, 100_000);
  expect(memory.bytes).toBe(100_000);
  other.end();
  expect(memory.bytes).toBe(0);
});

test('a request beyond those that may wait is refused, and a later one is answered', async () => {
  const gateway = await start({ config: { maxRequests: 2 } });
  const { ask, service } = gateway;
  const gate = Promise.withResolvers<void>();
  service.answer(after(gate.promise, honest));
  const waiting = ['A', 'B'].map((name) => ask(`query ${name} ${PAGE}`));
  await service.arrived(2);
  const headers = { 'apollo-require-preflight': 'yes' };
  const inAddress = () => gateway.fetch('/graphql?query={__typename}', { headers });
  expect(codesOf(await ask('{ __typename }'))).toEqual(['RATE_LIMITED']);
  const refusal = await inAddress();
  expect([refusal.status, refusal.headers.get('retry-after')]).toEqual([429, '5']);
  gate.resolve();
  for (const { errors } of await Promise.all(waiting)) expect(errors).toBeUndefined();
  expect(codesOf(await ask('{ __typename }'))).toEqual([]);
  expect((await inAddress()).status).toBe(200);
});
