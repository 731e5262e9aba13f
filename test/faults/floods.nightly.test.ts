/**
 * Gateways with so little memory that keeping all of a flood, or many times the bytes of one request or answer, would end
 * them. What each limit does is proved in test/http/memory.long.test.ts; here all of them hold together in a real heap.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import type { Reply } from '../service/service.ts';
import { after, honest, json } from '../support/imitations/scripted.ts';
import { startSmallGateway, type SmallGateway } from '../support/processes/small-gateway.ts';

const PERSONS = '{ persons(first: 1) { items { id } } }';
const FIRST_PAGE = /"data":\{"persons":\{"items":\[\{"id"/;
const BYTES = 400_000;
/** Of a small container. Other gateways have 64 MB, half of which is in use after the start. */
const CONTAINER = { NODE_OPTIONS: '--max-old-space-size=512 --max-semi-space-size=8' };
/** 12 kB, as many as a proxy may add. */
const HEADERS = Array.from({ length: 80 }, (_, at) => `x-h${at}: ${'v'.repeat(140)}\r\n`).join('');

interface Flood {
  readonly what: string;
  readonly env?: Record<string, string | undefined>;
  /** Returns what is of interest of the answers. */
  readonly happens: (gateway: SmallGateway) => Promise<readonly string[]>;
  /** Each is in one of the answers. */
  readonly some?: readonly RegExp[];
  /** In all of them. */
  readonly all?: RegExp;
}

test.each<Flood>([
  {
    what: 'requests with large variables that wait for the service',
    env: CONTAINER,
    happens: (gateway) =>
      floodOf(gateway, 100, (at) => ({
        query: `query ($after: String) { persons(first: 1, after: $after) { items { id n${at}: id } } }`,
        variables: { after: 'x'.repeat(BYTES) },
      })),
    // What the service says about such a cursor is not of interest.
    some: [/RATE_LIMITED/, /^(?!.*RATE_LIMITED)/],
  },
  {
    what: 'variables that take many times their text in memory',
    env: CONTAINER,
    // Each pair of brackets takes 24 times its bytes.
    happens: (gateway) =>
      floodOf(gateway, 60, () => {
        const people = `[{"__typename":"Person","id":"1","extra":[${'{},'.repeat(60_000)}{}]}]`;
        return `{"query":"query ($people: [_Any!]!) { _entities(representations: $people) { __typename } }","variables":{"people":${people}}}`;
      }),
    some: [/RATE_LIMITED/],
  },
  {
    what: 'operations that wait for the service with their plans',
    env: CONTAINER,
    happens: (gateway) => floodOf(gateway, 700, (at) => ({ query: lookups(at) })),
    some: [/RATE_LIMITED/, /^\{"data"/],
  },
  {
    what: 'equal operations, which are counted once',
    env: CONTAINER,
    happens: async ({ upstream, ask }) => {
      const release = hold(upstream);
      const answers = Array.from({ length: 100 }, () => ask({ query: lookups(0) }));
      await upstream.arrived(upstream.received.length + 1);
      release();
      return Promise.all(answers);
    },
    all: /^\{"data"/,
  },
  ...(
    [
      ['with large parameters', (n: number) => refusedRequest(n).repeat(15), 12],
      [
        'that are probes',
        () => `GET /health HTTP/1.1\r\nhost: a\r\n${HEADERS}\r\n`.repeat(15),
        200,
      ],
    ] as const
  ).map(([what, behind, count]): Flood => ({
    what: `requests behind one of their connection that waits, ${what}`,
    env: CONTAINER,
    happens: async (gateway) => {
      const release = hold(gateway.upstream);
      const waiting = gateway.ask({ query: PERSONS });
      await gateway.upstream.arrived(1);
      const sockets = Array.from({ length: count }, (_, n) =>
        send(gateway, requestOf(JSON.stringify({ query: PERSONS })) + behind(n)),
      );
      for (let n = 0; n < count / 5; n += 1) await healthOf(gateway);
      release();
      for (const { socket } of sockets) socket.destroy();
      return [await waiting];
    },
    all: FIRST_PAGE,
  })),
  {
    what: 'callers who do not read the page of GraphiQL, which share its memory',
    env: { GRAPHIQL: 'on', NODE_OPTIONS: '--max-old-space-size=256' },
    happens: async (gateway) => {
      const page = await fetch(gateway.url, { headers: { accept: 'text/html' } });
      const { length } = await page.text();
      const before = memoryOf(gateway);
      const unread = Array.from({ length: 60 }, () =>
        send(gateway, 'GET /graphql HTTP/1.1\r\nhost: localhost\r\naccept: text/html\r\n\r\n'),
      );
      for (const { socket } of unread) socket.pause();
      // Each probe is answered after all that has arrived before it.
      for (let n = 0; n < 20; n += 1) await healthOf(gateway);
      const isShared = memoryOf(gateway) - before < 20 * length;
      for (const { socket } of unread) socket.destroy();
      return [isShared ? 'shared' : 'one for each'];
    },
    all: /^shared$/,
  },
  {
    what: 'a request that arrives byte by byte',
    happens: async (gateway) => {
      const body = JSON.stringify({ query: PERSONS });
      const { answer } = send(
        gateway,
        'POST /graphql HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n' +
          'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n' +
          `${'1\r\n \r\n'.repeat(BYTES)}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      );
      return [await answer];
    },
    all: FIRST_PAGE,
  },
  {
    what: 'an answer of the service that arrives byte by byte',
    happens: async ({ upstream, ask }) => {
      upstream.answer(({ socket }) => {
        socket!.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n');
        socket!.write('transfer-encoding: chunked\r\nconnection: close\r\n\r\n');
        socket!.end(`${'1\r\n \r\n'.repeat(BYTES)}0\r\n\r\n`);
      }, honest);
      return [await ask({ query: PERSONS })];
    },
    all: /UPSTREAM_BAD_RESPONSE/,
  },
  {
    what: 'an answer of the service with an error in it, which takes only a few times its bytes',
    happens: async ({ upstream, ask }) => {
      const items = Array.from({ length: BYTES / 4 }, (_, id) => ({ id, firstName: `No. ${id}` }));
      const error = { message: 'No name.', path: ['persons', 'items', 3, 'firstName'] };
      upstream.answer(json({ data: { persons: { items } }, errors: [error] }));
      const answer = await ask({ query: '{ persons { items { id firstName } } }' });
      upstream.answer(honest);
      return [answer];
    },
    some: [new RegExp(`"firstName":"No. ${BYTES / 4 - 1}"`), /"No name\."/],
  },
  {
    what: 'variables that an operation does not declare, while it waits for the service',
    happens: async ({ upstream, ask }) => {
      const release = hold(upstream);
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
      release();
      return Promise.all(answers);
    },
    all: FIRST_PAGE,
  },
  {
    what: 'large variables of operations that are kept',
    happens: askedInTurn(50, (at) => ({
      query: `query Kept${at}($after: String) { persons(first: 1, after: $after) { items { id } } }`,
      variables: { after: 'x'.repeat(900_000) },
    })),
    all: /"persons"/,
  },
  {
    what: 'invalid operations',
    happens: askedInTurn(800, (n) => ({ query: `{nope${n}{x}}` })),
    all: /Cannot query field/,
  },
  {
    what: 'operations with long comments',
    happens: askedInTurn(45, (n) => ({ query: `${named(n)} #${'x'.repeat(900_000)}` })),
    all: /"items":\[\{"id"/,
  },
  {
    what: 'a total of a list with long cursors',
    happens: async ({ upstream, ask }) => {
      upstream.answer(pagesOfOne(700));
      const answer = await ask({ query: '{ personsConnection { totalCount } }' });
      upstream.answer(honest);
      return [answer];
    },
    all: /"totalCount":700/,
  },
])('a gateway outlives $what', { timeout: 240_000 }, async ({ env = {}, happens, some, all }) => {
  await using gateway = await startSmallGateway(env);
  const answers = await happens(gateway);
  for (const pattern of some ?? []) expect(answers).toContainEqual(expect.stringMatching(pattern));
  if (all) for (const answer of answers) expect(answer).toMatch(all);
  // Nothing of the flood counts any more.
  await vi.waitFor(async () => expect(await gateway.ask({ query: PERSONS })).toMatch(FIRST_PAGE), {
    timeout: 10_000,
  });
});

test('only some callers wait while the keys of their tokens do not arrive', async () => {
  await using silent = createServer(() => {});
  await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening));
  const { port } = silent.address() as AddressInfo;
  await using gateway = await startSmallGateway({
    ...CONTAINER,
    ALLOW_ANONYMOUS: undefined,
    AUTH_JWKS_URL: `http://127.0.0.1:${port}/keys`,
    AUTH_ISSUER: 'https://login.test',
    AUTH_AUDIENCE: 'recruiting',
  });
  const token = [{ alg: 'ES256', kid: 'made-up' }, { sub: 'x'.repeat(8_000) }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const request = requestOf(
    JSON.stringify({ query: PERSONS }),
    `connection: close\r\nauthorization: Bearer ${token}.c2ln\r\n`,
  );
  const callers = Array.from({ length: 2_000 }, () => send(gateway, request));
  const refusal = await Promise.race(callers.map(({ answer }) => answer));
  expect(refusal).toMatch(/^HTTP\/1.1 (429|503) [^]*retry-after: \d+[^]*RATE_LIMITED/i);
  expect(await healthOf(gateway)).toBe(200);
  for (const { socket } of callers) socket.destroy();
});

/** Many requests at once, which the service answers once the gateway has refused one of them. */
async function floodOf(
  gateway: SmallGateway,
  count: number,
  bodyOf: (at: number) => object | string,
): Promise<string[]> {
  const release = hold(gateway.upstream);
  // One that is cut is an answer too.
  const answers = Array.from({ length: count }, (_, at) =>
    gateway.ask(bodyOf(at)).catch((error: Error) => error.message),
  );
  await Promise.any(
    answers.map(async (answer) => {
      if (!(await answer).includes('RATE_LIMITED')) throw new Error('not refused');
    }),
  );
  await healthOf(gateway);
  release();
  return Promise.all(answers);
}

function askedInTurn(count: number, bodyOf: (at: number) => object): Flood['happens'] {
  return async ({ ask }) => {
    const answers: string[] = [];
    for (let at = 0; at < count; at += 1) answers.push(await ask(bodyOf(at)));
    return answers;
  };
}

/** Has the service answer nothing until the function is called that it returns. */
function hold(upstream: SmallGateway['upstream']): () => void {
  const gate = Promise.withResolvers<void>();
  upstream.answer(after(gate.promise, honest));
  return gate.resolve;
}

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

function named(n: number): string {
  return `{ a${n}: persons(first: 1) { items { id } } }`;
}

/** Looks up 25 persons. Its text has 1 KB, and with its plan it takes 1 MB. */
function lookups(of: number): string {
  const fields = Array.from({ length: 25 }, (_, at) => `p${of}_${at}: person(id: "${at}") { id }`);
  return `{ ${fields.join(' ')} }`;
}

/** Its variables take 30 times their bytes. */
function refusedRequest(n: number): string {
  return requestOf(`{"query":"{ nope${n} }","variables":{"unused":[${'{},'.repeat(60_000)}{}]}}`);
}

function requestOf(body: string, headers = ''): string {
  return `POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`;
}

/** The status of a probe. A gateway that has ended does not answer it. */
async function healthOf({ url, program }: SmallGateway): Promise<number> {
  const ended = program.ended.then(({ stderr }) => {
    throw new Error(stderr.slice(0, 300));
  });
  const probe = fetch(new URL('/health', url)).then(({ status }) => status);
  return Promise.race([probe, ended]);
}

/** Of the process, with what is outside of its heap, bytes. */
function memoryOf({ program: { pid } }: SmallGateway): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(status)![1]);
}

/** Sends text on a connection of its own. `answer`: all that came until the gateway closed it. */
function send({ url }: SmallGateway, text: string): { socket: Socket; answer: Promise<string> } {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('utf8');
  let received = '';
  // A gateway that has no room may cut it while it is sending.
  socket.on('error', () => {}).on('data', (part: string) => (received += part));
  socket.write(text);
  return { socket, answer: new Promise((done) => socket.on('close', () => done(received))) };
}
