import { createHash } from 'node:crypto';
import { parse, printSchema } from 'graphql';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import ownField from '../../examples/own-field/gateway.config.ts';
import plugin from '../../examples/plugin/gateway.config.ts';
import { yoga as reviews } from '../../examples/second-service/reviews.ts';
import { createGateway, type Gateway, type GatewayConfig } from '../../src/library/index.ts';
import { startService, type Service } from '../service/service.ts';
import { startServer } from '../support/test-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const KEY = 'key-of-an-example';
const hash = createHash('sha256').update(KEY).digest('hex');
let sandbox: Service;
let folder: ReturnType<typeof temporaryFolder>;
beforeAll(async () => {
  sandbox = await startService({ persons: 3 });
  folder = temporaryFolder();
});
afterEach(() => vi.unstubAllEnvs());
afterAll(async () => {
  await sandbox.close();
  folder[Symbol.dispose]();
});

test('examples/plugin: responses say how long they took, and an answer is kept for the next caller', async () => {
  await using opened = await open(plugin);
  const query = '{ persons { items { id } } }';
  const first = await opened.ask(query);
  expect(first.headers.get('server-timing')).toMatch(/^gateway;dur=\d+\.\d$/);
  const { graphql } = sandbox.stats;
  const second = await opened.ask(query);
  expect(await second.json()).toEqual(await first.json());
  expect(sandbox.stats.graphql).toBe(graphql);
});

test('examples/own-field: the greeting of each person, without the field that it needs', async () => {
  await using opened = await open(ownField);
  const greetings = sandbox.persons.all().map(({ firstName }) => ({
    greeting: firstName === null ? 'Good day,' : `Dear ${firstName},`,
  }));
  const query = '{ allPersons { greeting } }';
  expect(await (await opened.ask(query)).json()).toEqual({ data: { allPersons: greetings } });
  // For the program itself too.
  expect(printSchema(opened.gateway.schema)).toContain('greeting: String!');
  expect(await opened.gateway.executor({ document: parse(query) })).toEqual({
    data: { allPersons: greetings },
  });
});

test('examples/second-service: reviews of all persons of an answer, with one request and its own credential', async () => {
  const credentials: unknown[] = [];
  const url = await startServer((request, response) => {
    credentials.push(request.headers.authorization);
    void reviews(request, response);
  });
  vi.stubEnv('REVIEWS_URL', `${url}/graphql`);
  vi.stubEnv('REVIEWS_TOKEN', 'secret');
  const { default: secondService } =
    await import('../../examples/second-service/gateway.config.ts');
  await using opened = await open(secondService);
  const answer = await opened.ask(
    '{ personsConnection(last: 2) { nodes { id reviews { stars } } } }',
  );
  expect(await answer.json()).toEqual({
    data: {
      personsConnection: {
        nodes: sandbox.persons
          .all()
          .slice(-2)
          .map(({ id }) => ({ id, reviews: [{ stars: 5 }, { stars: 4 }] })),
      },
    },
  });
  expect(credentials).toEqual(['Bearer secret']);
});

async function open(
  config: GatewayConfig,
): Promise<AsyncDisposable & { readonly gateway: Gateway; ask(query: string): Promise<Response> }> {
  const gateway = await createGateway({
    settings: {
      RECRUITING_URL: sandbox.url,
      TOKEN_LINK: sandbox.makeNewSet(),
      TOKEN_STORE: `sqlite:${folder.file(`${sandbox.stats.refreshes}.db`)}`,
      AUTH_API_KEYS: `example:${hash}:read+drain`,
      LOG_LEVEL: 'silent',
    },
    config,
  });
  return {
    gateway,
    ask: async (query) =>
      await gateway.fetch('http://localhost/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': KEY },
        body: JSON.stringify({ query }),
      }),
    [Symbol.asyncDispose]: () => gateway.close(),
  };
}
