/** Gateways with so little memory that a request, or an answer of the service, which took many times its size would end them. */
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { after, honest, json, type Reply } from '../support/imitations/scripted.ts';
import { startSmallGateway } from '../support/processes/small-gateway.ts';

const BYTES = 400_000;
const PERSONS = '{ persons(first: 1) { items { id } } }';

test.concurrent(
  'a request that arrives byte by byte takes hardly more memory than its bytes',
  async () => {
    await using gateway = await start();
    const { url, ask, firstPage } = gateway;
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
  },
);

test.concurrent(
  'an answer of the service that arrives byte by byte takes hardly more memory than its bytes',
  async () => {
    await using gateway = await start();
    const { upstream, ask, firstPage } = gateway;
    upstream.answer(byteByByte, honest);
    expect(await ask({ query: PERSONS })).toContain('UPSTREAM_BAD_RESPONSE');
    expect(await ask({ query: PERSONS })).toBe(firstPage);
  },
);

test.concurrent.each([
  ['with a number that JavaScript writes otherwise', '1.50,'],
  ['', ''],
])(
  'variables that an operation does not declare are not kept while it waits for the service: %s',
  async (_, number) => {
    await using gateway = await start();
    const { upstream, ask, firstPage } = gateway;
    const gate = Promise.withResolvers<void>();
    upstream.answer(after(gate.promise, honest));
    const unused = `[${number}${'[],'.repeat(BYTES / 3)}0]`;
    const answers = Array.from({ length: 12 }, (__, at) => {
      const query = `query Waiting${at}($first: Int) { persons(first: $first) { items { id } } }`;
      return ask(`{"query":"${query}","variables":{"unused":${unused},"first":1}}`);
    });
    await Promise.race([upstream.arrived(answers.length), Promise.all(answers)]);
    gate.resolve();
    expect(await Promise.all(answers)).toEqual(answers.map(() => firstPage));
  },
);

test.concurrent(
  'an answer of the service with an error in it takes only a few times its bytes',
  async () => {
    await using gateway = await start();
    const { upstream, ask } = gateway;
    const items = Array.from({ length: BYTES / 4 }, (_, id) => ({ id, firstName: `First ${id}` }));
    const error = { message: 'No name.', path: ['persons', 'items', 3, 'firstName'] };
    upstream.answer(json({ data: { persons: { items } }, errors: [error] }));
    const answer = await ask({ query: '{ persons { items { id firstName } } }' });
    expect(answer).toContain(`{"id":"${BYTES / 4 - 1}","firstName":"First ${BYTES / 4 - 1}"}`);
    expect(answer).toContain('No name.');
  },
);

test.concurrent.each([
  ['invalid operations', 800, (n: number) => `{nope${n}{x}}`, 'Cannot query field'],
  [
    'operations with long comments',
    45,
    (n: number) => `{ a${n}: persons(first: 1) { items { id } } } #${'x'.repeat(900_000)}`,
    '"items":[{"id"',
  ],
  [
    'operations with many comments',
    25,
    (n: number) => `{ a${n}: persons(first: 1) { items { id } } } ${'#\n'.repeat(30_000)}`,
    '"items":[{"id"',
  ],
])(
  'a gateway outlives any number of %s, although it keeps what it has checked',
  async (_, count, textOf, expected) => {
    await using gateway = await start();
    for (let n = 0; n < count; n += 1) {
      expect(await gateway.ask({ query: textOf(n) })).toContain(expected);
    }
    expect(await gateway.ask({ query: PERSONS })).toBe(gateway.firstPage);
  },
);

test.concurrent(
  'a total of a list with long cursors takes no more memory than its page index may have',
  async () => {
    const pages = 700;
    await using gateway = await start();
    gateway.upstream.answer(pagesOfOne(pages));
    const answer = await gateway.ask({ query: '{ personsConnection { totalCount } }' });
    expect(answer).toContain(`"totalCount":${pages}`);
  },
);

/** A list with one record in each page, and cursors of 60 KB. */
function pagesOfOne(pages: number): Reply {
  const rest = 'x'.repeat(60_000);
  return (response, { body }) => {
    const { variables } = JSON.parse(body) as { variables: { _rs_after?: string } };
    const page = Number.parseInt(variables._rs_after ?? '0', 10);
    const pageInfo = { hasNextPage: page + 1 < pages, endCursor: `${page + 1}${rest}` };
    const items = [{ _rsId: String(page), id: String(page) }];
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ data: { persons: { items, pageInfo } } }));
  };
}

async function start() {
  const gateway = await startSmallGateway();
  return Object.assign(gateway, { firstPage: await gateway.ask({ query: PERSONS }) });
}

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
