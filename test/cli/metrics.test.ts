import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startService } from '../service/service.ts';
import { runProgram, startServe, type Program } from '../support/processes/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { wrote } from '../support/gateway/written.ts';

test('the metrics have the lifetimes of both tokens, the generation, the age of the pair and the exchanges', async () => {
  const { gateway } = await serve({ expiresIn: 3600 });
  await gateway.printed(/access token refreshed/);
  const { status, headers, text, values } = await metricsOf(gateway);
  expect(status).toBe(200);
  expect(headers.get('content-type')).toContain('text/plain');
  expect(values.get('recruiting_access_token_seconds_left')).toBeGreaterThan(3000);
  expect(values.get('recruiting_access_token_seconds_left')).toBeLessThanOrEqual(3600);
  expect(values.get('recruiting_refresh_token_seconds_left')).toBeGreaterThan(119 * 86_400);
  expect(values.get('recruiting_token_generation')).toBe(2);
  expect(values.get('recruiting_token_age_seconds')).toBeGreaterThanOrEqual(0);
  expect(values.get('recruiting_token_exchanges_total{outcome="granted"}')).toBe(1);
  expect(values.get('recruiting_token_exchange_seconds_count')).toBe(1);
  expect(text).toMatch(/^recruiting_build_info\{version="\d+\.\d+\.\d+"\} 1$/m);
  for (const [name, value] of values) {
    if (name.startsWith('recruiting_token_trouble{')) expect([name, value]).toEqual([name, 0]);
  }
});

test('a trouble is 1 while it lasts, and failed exchanges are counted by outcome', async () => {
  const { gateway, sandbox } = await serve({}, (service) => {
    service.tokenAnswers.next('drop-before');
  });
  await gateway.printed(/no clear answer/);
  const { values } = await metricsOf(gateway);
  expect(values.get('recruiting_token_trouble{trouble="uncertain"}')).toBe(1);
  expect(values.get('recruiting_token_trouble{trouble="lost"}')).toBe(0);
  expect(values.get('recruiting_token_exchanges_total{outcome="unclear"}')).toBe(1);
  expect(sandbox.exchanges).toHaveLength(1);
});

test('without tokens the metrics report them as missing, and have no lifetimes', async () => {
  const { gateway } = await serve({}, undefined, { TOKEN_LINK: '' });
  const { values } = await metricsOf(gateway);
  expect(values.get('recruiting_token_trouble{trouble="missing"}')).toBe(1);
  expect(values.has('recruiting_access_token_seconds_left')).toBe(false);
});

test('the admin address serves nothing but the metrics', async () => {
  const { gateway } = await serve();
  const url = await metricsUrl(gateway);
  expect((await fetch(new URL('/', url))).status).toBe(404);
  expect((await fetch(new URL('/graphql', url))).status).toBe(404);
  expect((await fetch(url, { method: 'POST' })).status).toBe(405);
  expect((await fetch(new URL('/metrics', gateway.url))).status).toBe(404);
});

test('a configured ADMIN_PORT that is taken prevents the start, and the error says what to change', async () => {
  const blocker = createServer();
  await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void blocker.close());
  const { port } = blocker.address() as AddressInfo;
  const { code, stderr } = await runProgram([], { env: { ADMIN_PORT: String(port) } });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    new RegExp(`127\\.0\\.0\\.1:${port}.*set ADMIN_PORT to another port`, 's'),
  );
});

async function serve(
  options: Parameters<typeof startService>[0] = {},
  prepare: (sandbox: Awaited<ReturnType<typeof startService>>) => void = () => {},
  env: Record<string, string> = {},
) {
  const sandbox = await startService(options);
  onTestFinished(() => sandbox.close());
  prepare(sandbox);
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const gateway = await startServe({
    cwd: folder.path,
    env: {
      RECRUITING_URL: sandbox.url,
      TOKEN_LINK: sandbox.tokenLink,
      ALLOW_ANONYMOUS: 'true',
      NODE_ENV: 'production',
      ...env,
    },
  });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return { gateway, sandbox };
}

async function metricsUrl(gateway: Program): Promise<string> {
  return (await gateway.printed(/http:\/\/[^"]+\/metrics/))[0];
}

async function metricsOf(gateway: Program) {
  const response = await fetch(await metricsUrl(gateway));
  const text = wrote(await response.text());
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const values = new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
  const { status, headers } = response;
  return { status, headers, text, values };
}
