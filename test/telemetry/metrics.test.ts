import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { VERSION } from '../../src/config.ts';
import { TROUBLES } from '../../src/tokens/health.ts';
import { startService } from '../service/service.ts';
import { runHere, serveHere, type RunningHere } from '../support/gateway/run-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { samplesOf } from '../support/processes/exposition.ts';

test.each<[string, state: 'valid' | 'uncertain' | 'missing', RegExp, outcome?: string]>([
  ['the lifetimes of both tokens', 'valid', /access token refreshed/, 'granted'],
  ['an exchange without a clear answer', 'uncertain', /no clear answer/, 'unclear'],
  ['missing tokens, without lifetimes', 'missing', /\/metrics/],
])('the metrics report %s', async (_, state, printed, outcome) => {
  const service = await startService({ expiresIn: 3600 });
  onTestFinished(() => service.close());
  if (state === 'uncertain') service.tokenAnswers.next('drop-before');
  using folder = temporaryFolder();
  await using serving = await serveHere({
    RECRUITING_URL: service.url,
    TOKEN_LINK: state === 'missing' ? '' : service.tokenLink,
    TOKEN_STORE: `sqlite:${folder.file('tokens.db')}`,
    ALLOW_ANONYMOUS: 'true',
    NODE_ENV: 'production',
  });
  await serving.printed(printed);
  const values = samplesOf(await (await fetch(await metricsUrl(serving))).text());
  expect(values.get(`recruiting_build_info{version="${VERSION}"}`)).toBe(1);
  for (const trouble of TROUBLES) {
    const value = values.get(`recruiting_token_trouble{trouble="${trouble}"}`);
    expect([trouble, value]).toEqual([trouble, trouble === state ? 1 : 0]);
  }
  if (outcome !== undefined) {
    expect(values.get(`recruiting_token_exchanges_total{outcome="${outcome}"}`)).toBe(1);
  }
  if (state === 'valid') {
    expect(values.get('recruiting_access_token_seconds_left')).toBeGreaterThan(3000);
    expect(values.get('recruiting_refresh_token_seconds_left')).toBeGreaterThan(119 * 86_400);
  }
  if (state === 'missing') expect(values.has('recruiting_access_token_seconds_left')).toBe(false);
});

test('the admin address serves nothing but the metrics, and not to a foreign host name', async () => {
  await using serving = await serveHere();
  const url = await metricsUrl(serving);
  expect((await fetch(url)).headers.get('content-type')).toContain('text/plain');
  expect((await fetch(new URL('/graphql', url))).status).toBe(404);
  expect((await fetch(url, { method: 'POST' })).status).toBe(405);
  expect((await fetch(new URL('/metrics', serving.url))).status).toBe(404);
  const foreign = get(url, { agent: false, headers: { host: 'evil.example' } });
  const [refused] = (await once(foreign, 'response')) as [IncomingMessage];
  expect(refused.statusCode).toBe(421);
  refused.resume();
});

test('a configured ADMIN_PORT that is taken prevents the start, and the error says what to change', async () => {
  await using serving = await serveHere();
  const { port } = new URL(await metricsUrl(serving));
  const { code, stderr } = await runHere([], { ADMIN_PORT: port });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    new RegExp(`127\\.0\\.0\\.1:${port}.*set ADMIN_PORT to another port`, 's'),
  );
});

async function metricsUrl(serving: RunningHere): Promise<string> {
  return (await serving.printed(/http:\/\/[^"]+\/metrics/))[0];
}
