/** A token link and RECRUITING_URL of two services: the refresh token of one must not be sent to the other. */
import { existsSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { startServer } from '../support/test-server.ts';
import { startScripted } from '../support/tokens/tokens.ts';
import { startGatewayOf } from './tokens-gateway.ts';
import { startOperator } from './tokens-operator.ts';

test.each(['its link', 'a file with the link', 'standard input'] as const)(
  'a link of another service than RECRUITING_URL is not read, given by %s, and the error names both services',
  async (by) => {
    const { tokens, service, file, storePath } = await startOperator();
    const other = await startScripted();
    writeFileSync(file('link'), other.tokenLink);
    const sources = { 'its link': other.tokenLink, 'a file with the link': file('link') };
    const source = by === 'standard input' ? '-' : sources[by];
    const { code, stdout, stderr } = await tokens(['import', source], { stdin: [other.tokenLink] });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`is at ${other.url}, but RECRUITING_URL is ${service.url}`);
    expect(stderr).toContain('Nothing was sent, and the link still works.');
    expect(stderr).toContain(`set TOKEN_LINK_ORIGIN=${other.url}`);
    expect(stderr).not.toContain(other.tokenLink);
    expect(other.sandbox.stats.requests.tokenLink).toBe(0);
    expect(service.exchanges).toEqual([]);
    if (by === 'its link') expect(existsSync(storePath)).toBe(false);
  },
);

test('a link at another address of the service is read if TOKEN_LINK_ORIGIN names that address', async () => {
  const { tokens, service, status } = await startOperator();
  const { link, origin } = await startAccount(service.tokenLink);
  expect((await tokens(['import', link])).code).toBe(2);
  const env = { TOKEN_LINK_ORIGIN: origin };
  expect(await tokens(['import', link], { env })).toMatchObject({ code: 0, stderr: '' });
  expect(await status()).toMatchObject({ state: 'healthy', generation: 2 });
  const again = await tokens(['import', service.makeNewSet(), '--replace'], { env });
  expect(again).toMatchObject({ code: 0, stderr: '' });
});

test('the JSON behind a link is imported wherever the link is', async () => {
  const { tokens, service } = await startOperator();
  const json = await (await fetch(service.tokenLink)).text();
  expect(await tokens(['import', '-'], { stdin: [json] })).toMatchObject({ code: 0, stderr: '' });
});

test('a gateway does not start with a TOKEN_LINK of another service, unless TOKEN_LINK_ORIGIN names its address', async () => {
  const operator = await startOperator();
  const { service, env, storePath } = operator;
  const { link, origin } = await startAccount(service.tokenLink);
  const refused = await runHere([], { ...env, ALLOW_ANONYMOUS: 'true', TOKEN_LINK: link });
  expect({ ...refused, stderr: '' }).toEqual({ code: 2, stdout: '', stderr: '' });
  expect(refused.stderr).toContain(
    `TOKEN_LINK is at ${origin}, but RECRUITING_URL is ${service.url}`,
  );
  expect(refused.stderr).not.toContain(link);
  expect(existsSync(storePath)).toBe(false);
  expect(service.sandbox.stats.requests.tokenLink).toBe(0);
  const gateway = await startGatewayOf(operator, { TOKEN_LINK: link, TOKEN_LINK_ORIGIN: origin });
  await gateway.printed(/access token refreshed/);
});

/** Gives out a link of the service at an address of its own, as a personal account does. */
async function startAccount(tokenLink: string): Promise<{ link: string; origin: string }> {
  const url = await startServer((_request, response) => {
    void fetch(tokenLink)
      .then((set) => set.text())
      .then((text) => response.end(text));
  });
  return { link: `${url}/a-secret-path`, origin: url };
}
