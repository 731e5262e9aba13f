import { Agent, get } from 'node:http';
import { buildSchema } from 'graphql';
import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { documentedSdl } from '../support/gateway.ts';
import { startServe, temporaryFolder } from '../support/process.ts';

test.each(['SIGTERM', 'SIGINT'] as const)(
  '%s: what is in flight is answered, then it ends with exit code 0',
  async (signal) => {
    const { gateway, asked, answer } = await serveOverSlowService();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());

    const reply = read(gateway.url, agent);
    await asked;
    gateway.signal(signal);
    await gateway.printed(/stopping/);
    answer();
    expect(await reply).toEqual({
      status: 200,
      // Or the client would keep the connection, and the process with it.
      connection: 'close',
      body: JSON.stringify({ data: { persons: { items: [] } } }),
    });
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  },
);

test('ends although a client keeps an idle connection open', async () => {
  const gateway = await startServe();
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  expect((await read(gateway.url, agent, '{__typename}')).status).toBe(200);
  gateway.signal('SIGTERM');
  expect(await gateway.ended).toMatchObject({ code: 0, signal: null });
});

const query = '{persons{items{id}}}';

function read(url: string, agent: Agent, asked = query) {
  return new Promise<{ status?: number; connection?: string; body: string }>((done, fail) => {
    const asking = { agent, headers: { 'apollo-require-preflight': 'true' } };
    const request = get(`${url}?query=${asked}`, asking, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      const { statusCode: status, headers } = response;
      response.once('end', () => done({ status: status!, connection: headers.connection!, body }));
    });
    request.once('error', fail);
  });
}

/** Its service answers when it is told to. */
async function serveOverSlowService() {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const schema = buildSchema(documentedSdl);
  schema.getQueryType()!.getFields()['persons']!.resolve = async () => {
    asked.resolve();
    await answered.promise;
    return { items: [], pageInfo: { first: 50, hasNextPage: false } };
  };
  const service = await startSandbox({ schema });
  onTestFinished(() => service.close());
  const gateway = await startServe({
    cwd: folder.path,
    env: { RECRUITING_URL: service.url, TOKEN_LINK: service.tokenLink, ALLOW_ANONYMOUS: 'true' },
  });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return { gateway, asked: asked.promise, answer: answered.resolve };
}
