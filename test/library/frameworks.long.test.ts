import { createServer, type RequestListener } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import { parse } from 'graphql';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createGateway, type Gateway, type GatewayConfig } from '../../src/library/index.ts';
import { startService, type Service, type ServiceOptions } from '../service/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Without hooks of other plugins, Yoga ends the request before it reads anything of it. */
const configs: Record<string, GatewayConfig> = {
  'without plugins': {},
  'with a plugin': { plugins: [{ onExecute: () => {} }] },
};

/** The program around a gateway, and the path of GraphQL in it. */
const programs: Record<string, (gateway: Gateway) => [RequestListener, string]> = {
  'node:http': ({ handler }) => [handler, '/graphql'],
  'a route of Express': ({ handler }) => [express().all('/graphql', handler), '/graphql'],
  Hono: ({ fetch: answer }) => [
    getRequestListener(new Hono().all('/graphql', ({ req }) => answer(req.raw)).fetch),
    '/graphql',
  ],
};

/** Hono replaces them in the whole process, which runs other files too. */
const { Request, Response } = globalThis;
afterAll(() => void Object.assign(globalThis, { Request, Response }));

describe.each(Object.entries(configs))('a gateway %s', (_, config) => {
  let quick: Opened;
  let slow: Opened;
  beforeAll(async () => {
    [quick, slow] = await Promise.all([
      open({ persons: 60 }, config),
      open({ latency: 30_000 }, config),
    ]);
  });
  afterAll(() => Promise.all([quick.close(), slow.close()]));

  test.each(Object.entries(programs))(
    'answers in %s: a POST, a GET, GraphiQL, in parts, and what is wrong',
    async (__, program) => {
      const url = await serve(program(quick.gateway));
      const ids = quick.sandbox.persons.all().map(({ id }) => ({ id }));
      // Several operations on one connection.
      for (const last of [10, 20]) {
        const query = `{ personsConnection(last: ${last}) { nodes { id } } }`;
        const answer = await fetch(url, post({ query }));
        expect([answer.status, await answer.json()]).toEqual([
          200,
          { data: { personsConnection: { nodes: ids.slice(-last) } } },
        ]);
      }
      const headers = { 'apollo-require-preflight': 'true' };
      const get = await fetch(`${url}?query={allPersons(limit:1){id}}`, { headers });
      expect(await get.json()).toEqual({ data: { allPersons: ids.slice(0, 1) } });

      const accept = 'application/graphql-response+json';
      expect((await fetch(url, post({ query: '{ nobody }' }, { accept }))).status).toBe(400);
      expect((await fetch(url, post({}))).status).toBe(400);

      const page = await fetch(url, { headers: { accept: 'text/html' } });
      expect(page.headers.get('content-type')).toContain('text/html');
      // Several megabytes.
      await page.body!.cancel();

      const multipart = { accept: 'multipart/mixed;deferSpec=20220824' };
      const streamed = await fetch(
        url,
        post({ query: '{ allPersons @stream { id } }' }, multipart),
      );
      expect(streamed.headers.get('content-type')).toContain('multipart/mixed');
      const text = await streamed.text();
      expect(text.match(/"id":/g)).toHaveLength(60);
      expect(text.match(/content-type:/gi)!.length).toBeGreaterThan(1);
    },
  );

  test.each([...Object.entries(programs), ['its executor', undefined] as const])(
    'in %s, a caller who leaves ends the upstream request',
    async (__, program) => {
      const leaving = new AbortController();
      const { signal } = leaving;
      const query = '{ allPersons { id } }';
      const asked = program
        ? fetch(await serve(program(slow.gateway)), { ...post({ query }), signal })
        : slow.gateway.executor({ document: parse(query), signal });
      const outcome = Promise.resolve(asked).catch((error: Error) => error.name);
      await vi.waitFor(() => expect(slow.sandbox.stats.inFlight).toBe(1), 10_000);
      leaving.abort();
      await vi.waitFor(() => expect(slow.sandbox.stats.inFlight).toBe(0), 10_000);
      expect(await outcome).toEqual(
        program ? 'AbortError' : expect.objectContaining({ errors: [expect.anything()] }),
      );
    },
  );

  test('a body that something else has read is refused with what to do, and no request waits for it', async () => {
    const program = express().use(express.json()).all('/graphql', quick.gateway.handler);
    const url = await serve([program, '/graphql']);
    const answer = await fetch(url, post({ query: '{ allPersons { id } }' }));
    const { errors } = (await answer.json()) as { errors: { message: string }[] };
    expect([answer.status, errors[0]!.message]).toEqual([
      400,
      expect.stringContaining('before body parsers'),
    ]);
  });
});

interface Opened {
  readonly sandbox: Service;
  readonly gateway: Gateway;
  close(): Promise<void>;
}

async function open(options: ServiceOptions, config: GatewayConfig): Promise<Opened> {
  const folder = temporaryFolder();
  const sandbox = await startService(options);
  const gateway = await createGateway({
    settings: {
      RECRUITING_URL: sandbox.url,
      TOKEN_LINK: sandbox.tokenLink,
      TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
      ALLOW_ANONYMOUS: true,
      LOG_LEVEL: 'silent',
    },
    config,
  });
  await vi.waitFor(async () => {
    expect((await gateway.fetch('http://localhost/ready')).status).toBe(200);
  });
  return {
    sandbox,
    gateway,
    close: async () => {
      await gateway.close();
      await sandbox.close();
      folder[Symbol.dispose]();
    },
  };
}

async function serve([listener, path]: [RequestListener, string]): Promise<string> {
  const server = createServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
}

function post(body: object, headers: Record<string, string> = {}) {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
    body: JSON.stringify(body),
  };
}
