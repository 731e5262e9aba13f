/** Floods of requests that only wait, against gateways with so little memory that keeping all of them would end it. */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import { after, honest } from '../support/imitations/scripted.ts';
import { startSmallGateway, type SmallGateway } from '../support/processes/small-gateway.ts';

const PERSONS = '{ persons(first: 1) { items { id } } }';
/** Of a small container. */
const startGateway = (env: Record<string, string | undefined> = {}) =>
  startSmallGateway({ NODE_OPTIONS: '--max-old-space-size=512 --max-semi-space-size=8', ...env });
const FIRST_PAGE = /"data":\{"persons":\{"items":\[\{"id"/;
/** 12 kB, as many as a proxy may add. */
const HEADERS = Array.from({ length: 80 }, (_, at) => `x-h${at}: ${'v'.repeat(140)}\r\n`).join('');

test.concurrent(
  'requests with large variables that wait for the service are refused beyond what fits into memory',
  async () => {
    await using gateway = await startGateway();
    const { upstream, ask } = gateway;
    const gate = Promise.withResolvers<void>();
    upstream.answer(after(gate.promise, honest));
    const after_ = 'x'.repeat(400_000);
    const answers = flood(100, (at) =>
      ask({
        query: `query ($after: String) { persons(first: 1, after: $after) { items { id n${at}: id } } }`,
        variables: { after: after_ },
      }),
    );
    await upstream.arrived(1);
    const refused = await firstRefusal(answers);
    expect(refused).toContain('RATE_LIMITED');
    expect(await health(gateway)).toBe(200);
    gate.resolve();
    const all = await Promise.all(answers);
    // What the service says about such a cursor is not of interest here.
    expect(all.filter((text) => !text.includes('RATE_LIMITED')).length).toBeGreaterThan(5);
    await isServing(gateway);
  },
);

test.concurrent(
  'variables that take many times their text in memory are counted by what they take',
  async () => {
    await using gateway = await startGateway();
    const { upstream, ask } = gateway;
    const gate = Promise.withResolvers<void>();
    upstream.answer(after(gate.promise, honest));
    const query =
      'query ($people: [_Any!]!) { _entities(representations: $people) { __typename } }';
    // Each pair of brackets takes 24 times its bytes.
    const extra = `[${'{},'.repeat(60_000)}{}]`;
    const people = `[{"__typename":"Person","id":"1","extra":${extra}}]`;
    const answers = flood(60, () => ask(`{"query":"${query}","variables":{"people":${people}}}`));
    await upstream.arrived(1);
    expect(await firstRefusal(answers)).toContain('RATE_LIMITED');
    expect(await health(gateway)).toBe(200);
    gate.resolve();
    await Promise.all(answers);
    await isServing(gateway);
  },
);

test.concurrent(
  'operations that wait for the service are counted with their plans, each once',
  async () => {
    await using gateway = await startGateway();
    const { upstream, ask } = gateway;
    const gate = Promise.withResolvers<void>();
    upstream.answer(after(gate.promise, honest));
    const answers = flood(700, (at) => ask({ query: lookups(at) }));
    expect(await firstRefusal(answers)).toContain('RATE_LIMITED');
    expect(await health(gateway)).toBe(200);
    gate.resolve();
    const all = await Promise.all(answers);
    expect(all.filter((text) => text.includes('"data"')).length).toBeGreaterThan(3);
    await isServing(gateway);

    const again = Promise.withResolvers<void>();
    upstream.answer(after(again.promise, honest));
    const before = upstream.received.length;
    const equal = flood(100, () => ask({ query: lookups(0) }));
    await upstream.arrived(before + 1);
    again.resolve();
    for (const text of await Promise.all(equal)) expect(text).toMatch(/^\{"data"/);
  },
);

test.concurrent('only some callers wait while the keys of their tokens do not arrive', async () => {
  await using silent = createServer(() => {});
  await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening));
  const { port } = silent.address() as AddressInfo;
  await using gateway = await startGateway({
    ALLOW_ANONYMOUS: undefined,
    AUTH_JWKS_URL: `http://127.0.0.1:${port}/keys`,
    AUTH_ISSUER: 'https://login.test',
    AUTH_AUDIENCE: 'recruiting',
  });
  const token = [{ alg: 'ES256', kid: 'made-up' }, { sub: 'x'.repeat(8_000) }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const connections = Array.from({ length: 2_000 }, () => open(gateway));
  for (const { send } of connections) {
    send(requestOf(PERSONS, `authorization: Bearer ${token}.c2ln\r\n`));
  }
  const refusal = await Promise.race(connections.map(({ received }) => received(/retryAfter.*\}/)));
  expect(refusal).toMatch(/^HTTP\/1.1 (429|503) [^]*retry-after: \d+[^]*RATE_LIMITED/i);
  expect(await health(gateway)).toBe(200);
  for (const { socket } of connections) socket.destroy();
});

test.concurrent.each([
  ['with large parameters', (n: number) => refusedRequest(n).repeat(15), 12],
  [
    'that are probes with many headers',
    () => `GET /health HTTP/1.1\r\nhost: localhost\r\n${HEADERS}\r\n`.repeat(15),
    200,
  ],
])(
  'requests behind one of their connection that waits are counted: those %s',
  async (_, behind, count) => {
    await using gateway = await startGateway();
    const { upstream } = gateway;
    const gate = Promise.withResolvers<void>();
    upstream.answer(after(gate.promise, honest));
    const waiting = gateway.ask({ query: PERSONS });
    await upstream.arrived(1);
    const connections = Array.from({ length: count }, () => open(gateway));
    for (const [n, { send }] of connections.entries()) {
      send(requestOf(PERSONS, '') + behind(n));
      if (n % 5 === 4) expect(await health(gateway)).toBe(200);
    }
    gate.resolve();
    expect(await waiting).toMatch(FIRST_PAGE);
    for (const { socket } of connections) socket.destroy();
    await isServing(gateway);
  },
);

test
  .runIf(existsSync('/proc'))
  .concurrent('callers who do not read the page of GraphiQL share its memory', async () => {
    await using gateway = await startGateway({
      GRAPHIQL: 'on',
      NODE_OPTIONS: '--max-old-space-size=256',
    });
    const page = () => fetch(gateway.url, { headers: { accept: 'text/html' } });
    const { length } = await (await page()).text();
    const before = memoryOf(gateway);
    const unread = Array.from({ length: 60 }, () => open(gateway));
    for (const { socket, send } of unread) {
      socket.pause();
      send('GET /graphql HTTP/1.1\r\nhost: localhost\r\naccept: text/html\r\n\r\n');
    }
    // Each probe is answered after all that has arrived before it.
    for (let n = 0; n < 20; n += 1) expect(await health(gateway)).toBe(200);
    expect(memoryOf(gateway) - before).toBeLessThan(20 * length);
    for (const { socket } of unread) socket.destroy();
  });

/** Of the process, with what is outside of its heap, bytes. */
function memoryOf({ program: { pid } }: SmallGateway): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(status)![1]);
}

/** Looks up 25 persons. Its text has 1 KB, and with its plan it takes 1 MB. */
function lookups(of: number): string {
  const fields = Array.from({ length: 25 }, (_, at) => `p${of}_${at}: person(id: "${at}") { id }`);
  return `{ ${fields.join(' ')} }`;
}

/** The status of a probe, or how the process ended. */
function health({ url, program }: SmallGateway): Promise<number | string> {
  const probe = fetch(new URL('/health', url)).then(({ status }) => status);
  return Promise.race([probe, program.ended.then(({ stderr }) => stderr.slice(0, 300))]);
}

/** Nothing of the flood counts any more. */
async function isServing({ ask }: SmallGateway): Promise<void> {
  await vi.waitFor(async () => expect(await ask({ query: PERSONS })).toMatch(FIRST_PAGE), {
    timeout: 10_000,
  });
}

/** Sends many. One that is cut because a test failed is not another failure. */
function flood(count: number, send: (at: number) => Promise<string>): Promise<string>[] {
  return Array.from({ length: count }, (_, at) => send(at).catch((error: Error) => error.message));
}

/** The first answer that says that nothing was executed. */
function firstRefusal(answers: readonly Promise<string>[]): Promise<string> {
  return Promise.any(
    answers.map(async (answer) => {
      const text = await answer;
      if (!text.includes('RATE_LIMITED')) throw new Error(text);
      return text;
    }),
  );
}

function requestOf(query: string, headers: string): string {
  const body = JSON.stringify({ query });
  return `POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`;
}

/** Its variables take 30 times their bytes. */
function refusedRequest(n: number): string {
  const body = `{"query":"{ nope${n} }","variables":{"unused":[${'{},'.repeat(60_000)}{}]}}`;
  return `POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

interface RawClient {
  readonly socket: Socket;
  send(text: string): void;
  /** Resolves to all that was received, when it matches. Never, if the connection ends before. */
  received(pattern: RegExp): Promise<string>;
}

function open({ url }: SmallGateway): RawClient {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('utf8');
  let text = '';
  const lookers = new Set<() => void>();
  // A gateway that has no room may cut it while it is sending.
  socket.on('error', () => {});
  socket.on('data', (part: string) => {
    text += part;
    for (const look of lookers) look();
  });
  return {
    socket,
    send: (part) => void socket.write(part),
    received: (pattern) =>
      new Promise((resolve) => {
        const look = () => {
          if (!pattern.test(text)) return;
          lookers.delete(look);
          resolve(text);
        };
        lookers.add(look);
        look();
      }),
  };
}
