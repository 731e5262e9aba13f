/**
 * Gateways with so little memory that keeping all of a flood, or many times the bytes of one request or answer, would end
 * them. What each limit does is proved in test/http/memory.long.test.ts; here all of them hold together in a real heap.
 */
import { expect, test, vi } from 'vitest';
import { startService, type Reply } from '../service/service.ts';
import { after, honest, json } from '../service/replies.ts';
import { headOf, openBare } from '../support/clients/bare-client.ts';
import { post } from '../support/clients/post.ts';
import { settingsOver } from '../support/gateway/settings-over.ts';
import { startServe } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A gateway that was just started has 30 MB of its 64 MB in use. The new space is that of `npm start`. */
const HEAP = '--max-old-space-size=64 --max-semi-space-size=8';

/** A gateway with so little memory that requests and answers which took many times their size would end it. */
async function startSmallGateway(env: Record<string, string> = {}) {
  await using ends = new AsyncDisposableStack();
  const folder = ends.use(temporaryFolder());
  const upstream = ends.use(await startService());
  const settings = {
    NODE_OPTIONS: HEAP,
    ...settingsOver(upstream, folder),
    // A process that collects garbage again and again is slow on a busy machine.
    UPSTREAM_TIMEOUT_MS: '120000',
    ...env,
  };
  const program = ends.use(await startServe({ env: settings }));
  const { url } = program;
  const ask = async (sent: object | string) => (await fetch(url, post(sent))).text();
  const open = ends.move();
  return { upstream, url, program, ask, [Symbol.asyncDispose]: () => open.disposeAsync() };
}

type SmallGateway = Awaited<ReturnType<typeof startSmallGateway>>;

const PERSONS = '{ persons(first: 1) { items { id } } }';
const FIRST_PAGE = /"data":\{"persons":\{"items":\[\{"id"/;
const BYTES = 400_000;
/** Of a small container. Other gateways have 64 MB, half of which is in use after the start. */
const CONTAINER = { NODE_OPTIONS: '--max-old-space-size=512 --max-semi-space-size=8' };

interface Flood {
  readonly what: string;
  readonly env?: Record<string, string>;
  /** Returns what is of interest of the answers. */
  readonly happens: (gateway: SmallGateway) => Promise<readonly string[]>;
  /** Each is in one of the answers. */
  readonly some?: readonly RegExp[];
  /** In all of them. */
  readonly all?: RegExp;
}

test.each<Flood>([
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
    what: 'a request that arrives byte by byte',
    happens: async (gateway) => {
      const body = JSON.stringify({ query: PERSONS });
      const request =
        'POST /graphql HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n' +
        'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n' +
        `${'1\r\n \r\n'.repeat(BYTES)}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
      return [await headOf(openBare(gateway, request))];
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
    some: [FIRST_PAGE, /RATE_LIMITED/],
  },
  {
    what: 'operations with long comments and large variables, which are kept, and invalid ones',
    happens: async ({ ask }) => {
      const answers: string[] = [];
      const variables = { after: 'x'.repeat(BYTES) };
      for (let at = 0; at < 100; at += 1) {
        const query = `query ($after: String) { a${at}: persons(first: 1, after: $after) { items { id } } }`;
        answers.push(await ask({ query: `${query} #${'x'.repeat(BYTES)}`, variables }));
        for (let n = 0; n < 8; n += 1) answers.push(await ask({ query: `{nope${at}x${n}{x}}` }));
      }
      return answers;
    },
    all: /"persons"|"a\d+"|Cannot query field/,
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

/** Looks up 25 persons. Its text has 1 KB, and with its plan it takes 1 MB. */
function lookups(of: number): string {
  const fields = Array.from({ length: 25 }, (_, at) => `p${of}_${at}: person(id: "${at}") { id }`);
  return `{ ${fields.join(' ')} }`;
}

/** The status of a probe. A gateway that has ended does not answer it. */
async function healthOf({ url, program }: SmallGateway): Promise<number> {
  const ended = program.ended.then(({ stderr }) => {
    throw new Error(stderr.slice(0, 300));
  });
  const probe = fetch(new URL('/health', url)).then(({ status }) => status);
  return Promise.race([probe, ended]);
}
