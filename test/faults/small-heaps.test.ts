/** A gateway with so little memory that a request, or an answer of the service, which took many times its size would end it. */
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Reply } from '../service/service.ts';
import { after, honest, json } from '../support/imitations/scripted.ts';
import { startSmallGateway, type SmallGateway } from '../support/processes/small-gateway.ts';

const BYTES = 400_000;
const PERSONS = '{ persons(first: 1) { items { id } } }';

let gateway: SmallGateway;
let firstPage: string;
beforeAll(async () => {
  gateway = await startSmallGateway();
  firstPage = await gateway.ask({ query: PERSONS });
});
afterAll(() => gateway[Symbol.asyncDispose]());
beforeEach(() => gateway.upstream.answer(honest));

test('a request that arrives byte by byte takes hardly more memory than its bytes', async () => {
  const { url, ask } = gateway;
  const body = JSON.stringify({ query: PERSONS });
  const chunk = `${body.length.toString(16)}\r\n${body}\r\n`;
  const response = await exchange(url, [
    'POST /graphql HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n',
    'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
    singleBytes(),
    `${chunk}0\r\n\r\n`,
  ]);
  expect(response).toContain(firstPage);
  expect(await ask({ query: PERSONS })).toBe(firstPage);
});

test('an answer of the service that arrives byte by byte takes hardly more memory than its bytes', async () => {
  const { upstream, ask } = gateway;
  upstream.answer(byteByByte, honest);
  expect(await ask({ query: PERSONS })).toContain('UPSTREAM_BAD_RESPONSE');
  expect(await ask({ query: PERSONS })).toBe(firstPage);
});

test('variables that an operation does not declare are not kept while it waits for the service', async () => {
  const { upstream, ask } = gateway;
  const gate = Promise.withResolvers<void>();
  upstream.answer(after(gate.promise, honest));
  const unused = `[${'[],'.repeat(BYTES / 3)}0]`;
  const before = upstream.received.length;
  const answers: Promise<string>[] = [];
  // One after the other: bodies that arrive together are bounded by themselves.
  for (let at = 0; at < 12; at += 1) {
    const query = `query Waiting${at}($first: Int) { persons(first: $first) { items { id } } }`;
    const answer = ask(`{"query":"${query}","variables":{"unused":${unused},"first":1}}`);
    answers.push(answer);
    await Promise.race([upstream.arrived(before + answers.length), answer]);
  }
  gate.resolve();
  expect(await Promise.all(answers)).toEqual(answers.map(() => firstPage));
});

test('variables are not kept with the operations that are', async () => {
  const { ask } = gateway;
  const variables = { after: 'x'.repeat(900_000) };
  for (let at = 0; at < 50; at += 1) {
    const query = `query Kept${at}($after: String) { persons(after: $after) { items { id } } }`;
    expect(await ask({ query, variables })).toContain('"persons"');
  }
  expect(await ask({ query: PERSONS })).toBe(firstPage);
});

test('an answer of the service with an error in it takes only a few times its bytes', async () => {
  const { upstream, ask } = gateway;
  const items = Array.from({ length: BYTES / 4 }, (_, id) => ({ id, firstName: `First ${id}` }));
  const error = { message: 'No name.', path: ['persons', 'items', 3, 'firstName'] };
  upstream.answer(json({ data: { persons: { items } }, errors: [error] }));
  const answer = await ask({ query: '{ persons { items { id firstName } } }' });
  expect(answer).toContain(`{"id":${BYTES / 4 - 1},"firstName":"First ${BYTES / 4 - 1}"}`);
  expect(answer).toContain('No name.');
});

function singleBytes(): string {
  return '1\r\n \r\n'.repeat(BYTES);
}

const byteByByte: Reply = ({ socket }) => {
  socket!.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n');
  socket!.write('transfer-encoding: chunked\r\nconnection: close\r\n\r\n');
  socket!.end(`${singleBytes()}0\r\n\r\n`);
};

/** Sends these texts on a connection of their own, and returns all that is answered. */
function exchange(url: string, texts: readonly string[]): Promise<string> {
  return new Promise((done) => {
    let answer = '';
    const socket = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('utf8');
    socket.on('error', () => {}).on('close', () => done(answer));
    socket.on('data', (text: string) => (answer += text));
    for (const text of texts) socket.write(text);
  });
}
