import { createServer, type RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import { parse } from 'graphql';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createGateway, type Gateway, type GatewayConfig } from '../../src/library/index.ts';
import { startService, type Service } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { listenForTest } from '../support/test-server.ts';

/** Without hooks of other plugins, Yoga ends the request before it reads anything of it. */
const CONFIGS: Record<string, GatewayConfig> = {
  'without plugins': {},
  'with a plugin': { plugins: [{ onExecute: () => {} }] },
};

/** The program around a gateway. */
const PROGRAMS: Record<string, (gateway: Gateway) => RequestListener> = {
  'node:http': ({ handler }) => handler,
  'a route of Express': ({ handler }) => express().all('/graphql', handler),
  Hono: ({ fetch: answer }) =>
    getRequestListener(new Hono().all('/graphql', ({ req }) => answer(req.raw)).fetch),
};

/** Hono replaces them in the whole process, which runs other files too. */
const { Request, Response } = globalThis;
afterAll(() => void Object.assign(globalThis, { Request, Response }));

const ALL = '{ allPersons { id } }';

describe.each(Object.entries(CONFIGS))('a gateway %s', (_, config) => {
  const folder = temporaryFolder();
  let service: Service;
  let gateway: Gateway;
  beforeAll(async () => {
    service = await startService({ persons: 60 });
    const settings = {
      RECRUITING_URL: service.url,
      TOKEN_LINK: service.tokenLink,
      TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
      ALLOW_ANONYMOUS: true,
      LOG_LEVEL: 'silent',
    };
    gateway = await createGateway({ settings, config });
    await vi.waitUntil(async () => (await gateway.fetch('http://localhost/ready')).ok);
  });
  afterAll(async () => {
    await gateway.close();
    await service.close();
    folder[Symbol.dispose]();
  });

  test.each(Object.entries(PROGRAMS))(
    'in %s answers operations, serves GraphiQL, and streams in parts',
    async (__, program) => {
      const url = await serve(program(gateway));
      const ids = service.persons.all().map(({ id }) => ({ id }));
      // Several operations on one connection.
      for (const last of [10, 20]) {
        const query = `{ personsConnection(last: ${last}) { nodes { id } } }`;
        expect(await askAt(url, query)).toEqual({
          data: { personsConnection: { nodes: ids.slice(-last) } },
        });
      }
      const page = await fetch(url, { headers: { accept: 'text/html' } });
      expect(page.headers.get('content-type')).toContain('text/html');
      // Several megabytes.
      await page.body!.cancel();

      const accept = 'multipart/mixed;deferSpec=20220824';
      const streamed = await fetch(url, post('{ allPersons @stream { id } }', accept));
      expect(streamed.headers.get('content-type')).toContain('multipart/mixed');
      const text = await streamed.text();
      expect(text.match(/"id":/g)).toHaveLength(60);
      expect(text.match(/content-type:/gi)!.length).toBeGreaterThan(1);
    },
  );

  test.each([...Object.entries(PROGRAMS), ['its executor', undefined] as const])(
    'in %s ends the upstream request of a caller who leaves',
    async (__, program) => {
      const arrived = Promise.withResolvers<void>();
      const left = Promise.withResolvers<void>();
      service.answer((response) => {
        response.once('close', left.resolve);
        arrived.resolve();
      });
      const leaving = new AbortController();
      const { signal } = leaving;
      const asked = program
        ? fetch(await serve(program(gateway)), { ...post(ALL), signal })
        : gateway.executor({ document: parse(ALL), signal });
      const outcome = Promise.resolve(asked).catch((error: Error) => error.name);
      await arrived.promise;
      leaving.abort();
      await left.promise;
      expect(await outcome).toEqual(
        program ? 'AbortError' : expect.objectContaining({ errors: [expect.anything()] }),
      );
    },
  );

  test('refuses a body that something else has read, and says what to do', async () => {
    const url = await serve(express().use(express.json()).all('/graphql', gateway.handler));
    const answer = await fetch(url, post(ALL));
    const { errors } = (await answer.json()) as { errors: { message: string }[] };
    expect([answer.status, errors[0]!.message]).toEqual([
      400,
      expect.stringContaining('before body parsers'),
    ]);
  });
});

/** Returns the address of GraphQL in it. */
async function serve(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listenForTest(createServer(listener), '127.0.0.1')}/graphql`;
}

function post(query: string, accept = 'application/json') {
  const headers = { 'content-type': 'application/json', accept };
  return { method: 'POST', headers, body: JSON.stringify({ query }) };
}
