import { Agent, get } from 'node:http';
import { buildSchema } from 'graphql';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../service/service.ts';
import { documentedSdl } from '../support/documented-sdl.ts';
import {
  canMakeContainers,
  served,
  startNpm,
  type Program,
  type ProgramOptions,
  type Served,
} from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test.each([
  ['npm start', 'SIGINT', { asInit: false }],
  ['npm start as the first process of a container', 'SIGTERM', { asInit: true }],
] as const)(
  '%s: after %s requests in flight are answered, and all processes end with exit code 0',
  async (_name, signal, { asInit }) => {
    if (asInit && !canMakeContainers()) return;
    const { gateway, arrived, answer } = await serveOverSlowService((options) =>
      startNpm(['start'], { ...options, asInit }),
    );
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const reply = read(gateway.url, agent);
    await arrived;
    gateway.signal(signal);
    await gateway.printed(/stopping/);
    answer();
    expect(await reply).toEqual({
      status: 200,
      // Otherwise the client would keep the connection, and the connection the process.
      connection: 'close',
      body: JSON.stringify({ data: { persons: { items: [] } } }),
    });
    expect(await gateway.ended).toMatchObject({ code: 0, signal: null });
    expect(gateway.isAlive).toBe(false);
  },
);

function read(url: string, agent: Agent) {
  return new Promise<{ status?: number; connection?: string; body: string }>((done, fail) => {
    const asking = { agent, headers: { 'apollo-require-preflight': 'true' } };
    const request = get(`${url}?query={persons{items{id}}}`, asking, (response) => {
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

/** A gateway whose service answers when the test lets it. */
async function serveOverSlowService<P extends Program>(
  start: (options: ProgramOptions) => P,
): Promise<SlowlyServed<P>> {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const arrived = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const schema = buildSchema(documentedSdl);
  schema.getQueryType()!.getFields()['persons']!.resolve = async () => {
    arrived.resolve();
    await answered.promise;
    return { items: [], pageInfo: { first: 50, hasNextPage: false } };
  };
  const service = await startService({ schema });
  onTestFinished(() => service.close());
  const program = start({
    env: {
      RECRUITING_URL: service.url,
      TOKEN_LINK: service.tokenLink,
      TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
      ALLOW_ANONYMOUS: 'true',
    },
  });
  onTestFinished(() => program[Symbol.asyncDispose]());
  return { gateway: await served(program), arrived: arrived.promise, answer: answered.resolve };
}

interface SlowlyServed<P> {
  readonly gateway: P & Served;
  readonly arrived: Promise<void>;
  readonly answer: () => void;
}
