import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { listen } from '../../../src/http/listen.ts';
import { startSandboxInside } from '../../support/gateway/sandbox-inside.ts';
import { openBrowser } from '../../support/clients/browser.ts';
import { startFront, type Front } from '../front.ts';
import { attack } from './hostile-page.ts';

/** Pages of two sites in a real browser. Their host names resolve to this machine, on which the gateway runs too. */
let browser: Browser;
let port: number;
let front: Front;
const sites = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<body></body>');
});

beforeAll(async () => {
  browser = await openBrowser(['evil.example', 'people.example']);
  await new Promise<void>((listening) => sites.listen(0, '127.0.0.1', listening));
  ({ port } = sites.address() as AddressInfo);
  front = await start();
});
afterAll(async () => {
  await browser.close();
  await front[Symbol.asyncDispose]();
  sites.close();
});

test('a hostile page cannot read a gateway on this machine, and cannot reach the service through it', async () => {
  const page = await open(siteOf('evil.example'));
  const read = await page.evaluate(attack, front.url);
  expect(Object.entries(read).filter(([, text]) => text !== '')).toEqual([]);
  expect(reached()).toEqual({ requests: 0, renames: 0 });
  // All requests arrived: the gateway refused them, not the browser.
  expect(front.gateway.logged.filter(({ msg }) => msg === 'request').length).toBeGreaterThan(20);
});

test('a hostile page whose host name resolves to the gateway cannot read it either', async () => {
  const url = front.url.replace('127.0.0.1', 'evil.example');
  const page = await open(`${url}/`);
  const read = await page.evaluate(attack, url);
  const answered = Object.entries(read).filter(([, text]) => text !== '');
  expect(answered.length).toBeGreaterThan(15);
  const refused = answered.filter((answer) => !isProbe(answer));
  expect(refused.filter(([, text]) => !text.includes('adds it to ALLOWED_HOSTS'))).toEqual([]);
  expect(reached()).toEqual({ requests: 0, renames: 0 });
});

/** Probes come from anywhere, and learn no more than the status says. */
function isProbe([name, text]: [string, string]): boolean {
  return name.startsWith('a probe') && text === '{"ready":true}';
}

test('a page of a listed origin can use POST and GET, and can read refusals', async () => {
  const page = await open(siteOf('people.example'));
  expect(await page.evaluate(ask, front.url)).toContain('"data":{"me":{"id":1}}');
  const inAddress = `${front.url}/graphql?query={me{id}}`;
  const texts = await page.evaluate(async (url) => {
    const bare = await fetch(url);
    const preflighted = await fetch(url, { headers: { 'apollo-require-preflight': 'true' } });
    return [await bare.text(), await preflighted.text()];
  }, inAddress);
  expect(texts).toEqual([
    expect.stringContaining('apollo-require-preflight'),
    expect.stringContaining('"data":{"me":{"id":1}}'),
  ]);
});

test('a page of another port of this machine can read the sandbox, and a hostile page cannot', async () => {
  await using sandbox = await startSandboxInside();
  const server = await listen(sandbox.handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const read = async ({ name, query }: { name: string; query: string }) => {
    const page = await open(siteOf(name));
    return page.evaluate(
      async ([url, text]) => {
        const init = {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: 'Bearer of-nobody' },
          body: JSON.stringify({ query: text }),
        };
        return fetch(url, init).then(
          (response) => response.text(),
          () => 'the browser refused',
        );
      },
      [`${server.url}/graphql`, query] as const,
    );
  };
  const query = '{ allPersons(limit: 1) { firstName } }';
  expect(await read({ name: 'localhost', query })).toContain('"firstName":"Emma"');
  expect(await read({ name: 'evil.example', query })).toBe('the browser refused');
});

function siteOf(name: string): string {
  return `http://${name}:${port}/`;
}

function start(): Promise<Front> {
  const corsOrigins = [new URL(siteOf('people.example')).origin];
  return startFront({ config: { corsOrigins, mutations: 'all' } });
}

async function open(url: string): Promise<Page> {
  const page = await browser.newPage();
  onTestFinished(() => page.close());
  await page.goto(url);
  return page;
}

/** The requests that reached the service. */
function reached() {
  return { requests: front.service.stats.requests.graphql, renames: front.sent.renames };
}

/** Runs in the browser. */
async function ask(gateway: string): Promise<string> {
  const response = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-id': 'a' },
    body: JSON.stringify({ query: '{ me { id } }' }),
  });
  return response.text();
}
