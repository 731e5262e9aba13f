/** A TOKEN_LINK and RECRUITING_URL of two services: the refresh token of one must not be sent to the other. */
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runHere } from '../support/gateway/run-here.ts';
import { startServer } from '../support/test-server.ts';
import { startGatewayOf } from './tokens-gateway.ts';
import { startOperator } from './tokens-operator.ts';

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
  await gateway.printed(/token link was imported/);
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
