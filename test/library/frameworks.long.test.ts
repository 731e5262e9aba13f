import { createServer, type RequestListener } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createGateway, type Gateway, type GatewayConfig } from '../../src/library/index.ts';
import { startService, type Service, type ServiceOptions } from '../service/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

type Opened = Awaited<ReturnType<typeof open>>;
let sandbox: Service;
let gateway: Gateway;
let slow: Opened;

/** Without hooks of other plugins, Yoga ends the request before it reads anything of it. */
const configs: Record<string, GatewayConfig> = {
  'without plugins': {},
  'with a plugin': { plugins: [{ onExecute: () => {} }] },
};

/** The program around a gateway, and the path of GraphQL in it. */
const programs: Record<string, (gateway: Gateway) => [RequestListener, string]> = {
  'node:http': ({ handler }) => [handler, '/graphql'],
  'a route of Express': ({ handler }) => [express().all('/graphql', handler), '/graphql'],
  'Express at a longer path': ({ handler }) => [
    express().use('/api/graphql', handler),
    '/api/graphql',
  ],
  'Express at a path above that of GraphQL': ({ handler }) => [
    express().use('/people', handler),
    '/people/graphql',
  ],
  Hono: ({ fetch: answer }) => [
    getRequestListener(new Hono().all('/graphql', ({ req }) => answer(req.raw)).fetch),
    '/graphql',
  ],
};

/** Hono replaces them in the whole process, which runs other files too. */
const { Request, Response } = globalThis;
afterAll(() => void Object.assign(globalThis, { Request, Response }));

describe.each(Object.entries(configs))('a gateway %s', (_, config) => {
  let opened: Opened;
  beforeAll(async () => {
    [opened, slow] = await Promise.all([
      open({ persons: 60 }, config),
      open({ latency: 30_000 }, config),
    ]);
    ({ sandbox, gateway } = opened);
  });
  afterAll(() => Promise.all([opened.close(), slow.close()]));

  describe.each(Object.entries(programs))('in %s', (__, program) => {
    test('answers several operations on one connection', async () => {
      const url = await serve(program(gateway));
      for (const last of [10, 20]) {
        const query = `{ personsConnection(last: ${last}) { nodes { id } } }`;
        const answer = await fetch(url, post({ query }));
        expect(answer.status).toBe(200);
        expect(await answer.json()).toEqual({
          data: { personsConnection: { nodes: ids().slice(-last) } },
        });
      }
    });

    test('answers a GET, and refuses what is wrong with the status that it has by itself', async () => {
      const url = await serve(program(gateway));
      const query = encodeURIComponent('{ allPersons(limit: 1) { id } }');
      const headers = { 'apollo-require-preflight': 'true' };
      const get = await fetch(`${url}?query=${query}`, { headers });
      expect(await get.json()).toEqual({ data: { allPersons: ids().slice(0, 1) } });
      const accept = 'application/graphql-response+json';
      const unknown = await fetch(url, post({ query: '{ nobody }' }, { accept }));
      expect([unknown.status, await unknown.json()]).toEqual([
        400,
        { errors: [expect.objectContaining({ message: expect.stringContaining('"nobody"') })] },
      ]);
      expect((await fetch(url, post({}))).status).toBe(400);
    });

    test('serves GraphiQL to a browser', async () => {
      const url = await serve(program(gateway));
      const page = await fetch(url, { headers: { accept: 'text/html' } });
      expect(page.headers.get('content-type')).toContain('text/html');
      // Several megabytes.
      await page.body!.cancel();
    });

    test('answers in parts', async () => {
      const url = await serve(program(gateway));
      const accept = 'multipart/mixed;deferSpec=20220824';
      const answer = await fetch(url, post({ query: '{ allPersons @stream { id } }' }, { accept }));
      expect(answer.headers.get('content-type')).toContain('multipart/mixed');
      const text = await answer.text();
      expect(text.match(/"id":/g)).toHaveLength(60);
      expect(text.match(/content-type:/gi)!.length).toBeGreaterThan(1);
    });

    test('ends the upstream request of a caller who leaves', async () => {
      const url = await serve(program(slow.gateway));
      const leaving = new AbortController();
      const init = { ...post({ query: '{ allPersons { id } }' }), signal: leaving.signal };
      const answer = fetch(url, init).catch((error: Error) => error.name);
      await vi.waitFor(() => expect(slow.sandbox.stats.inFlight).toBe(1), 10_000);
      leaving.abort();
      expect(await answer).toBe('AbortError');
      await vi.waitFor(() => expect(slow.sandbox.stats.inFlight).toBe(0), 10_000);
    });
  });

  test('a path above that of GraphQL has the probes too', async () => {
    const url = await serve([express().use('/api', gateway.handler), '/api']);
    const paths = ['/health', '/ready', '/nothing'];
    const statuses = paths.map(async (path) => (await fetch(`${url}${path}`)).status);
    expect(await Promise.all(statuses)).toEqual([200, 200, 404]);
  });

  test('a body that something else has read is refused with what to do, and no request waits for it', async () => {
    const url = await serve([
      express().use(express.json()).use('/graphql', gateway.handler),
      '/graphql',
    ]);
    const answer = await fetch(url, post({ query: '{ allPersons { id } }' }));
    const { errors } = (await answer.json()) as { errors: { message: string }[] };
    expect([answer.status, errors[0]!.message]).toEqual([
      400,
      expect.stringContaining('before body parsers'),
    ]);
  });
});

function ids(): { id: string }[] {
  return sandbox.persons.all().map(({ id }) => ({ id }));
}

async function open(options: ServiceOptions, config: GatewayConfig) {
  const folder = temporaryFolder();
  const started = await startService(options);
  const opened = await createGateway({
    settings: {
      RECRUITING_URL: started.url,
      TOKEN_LINK: started.tokenLink,
      TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
      ALLOW_ANONYMOUS: true,
      LOG_LEVEL: 'silent',
    },
    config,
  });
  await vi.waitFor(async () => {
    expect((await opened.fetch('http://localhost/ready')).status).toBe(200);
  });
  return {
    sandbox: started,
    gateway: opened,
    close: async () => {
      await opened.close();
      await started.close();
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
