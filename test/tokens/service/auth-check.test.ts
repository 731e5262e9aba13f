import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { authCheck } from '../../../src/tokens/service/auth-check.ts';
import { refusingAddress, startServer, writeHugeBody } from '../../support/test-server.ts';

const TOKEN = 'a-secret-access-token';
const FOREIGN = 'status 403 that is not from the service';

describe('the check of the access token', () => {
  test('the check is sent as the interface requires', async () => {
    const asked: unknown[] = [];
    const baseUrl = await startServer(({ method, url, headers }, response) => {
      asked.push([method, url, headers.authorization, headers['api-user-agent']]);
      response.writeHead(204).end();
    });
    expect(await check(`${baseUrl}/deeper`)).toEqual({ kind: 'works' });
    expect(asked).toEqual([['GET', '/deeper/auth_check', `Bearer ${TOKEN}`, 'test']]);
  });

  test.each<[string, (response: ServerResponse) => unknown, unknown]>([
    ['200', (response) => response.end('OK'), { kind: 'works' }],
    ['200 and 100 MB', writeHugeBody, unknown('status 200 with a page')],
    ['200 and HTML', (response) => response.end(' <html>'), unknown('status 200 with a page')],
    ['401 token_expired', refuses('token_expired'), refused('token_expired')],
    ['401 and another code', refuses('token_revoked'), refused('token_revoked')],
    ['401 and free text', refuses(`Token ${TOKEN} has expired.`), refused('unknown')],
    ['401 and a long word', refuses('a'.repeat(41)), refused('unknown')],
    ['401 and no text', refuses({ x: 1 }), refused('unknown')],
    ['401 and null', (response) => response.writeHead(401).end('null'), refused('unknown')],
    ['401 and HTML', (response) => response.writeHead(401).end('<html>'), refused('unknown')],
    ['401 and nothing', (response) => response.writeHead(401).end(), refused('unknown')],
    ['403 of the service', refuses('user_blocked', 403), refused('user_blocked')],
    ['403 of the service with free text', refuses('No.', 403), refused('unknown')],
    ['403 of a firewall', (response) => response.writeHead(403).end('<html>'), unknown(FOREIGN)],
    ['403 and nothing', (response) => response.writeHead(403).end(), unknown(FOREIGN)],
    ['403 and JSON of somebody', (response) => response.writeHead(403).end('{}'), unknown(FOREIGN)],
    ['500', (response) => response.writeHead(500).end(), unknown('status 500')],
    ['404', (response) => response.writeHead(404).end(), unknown('status 404')],
    ['429', (response) => response.writeHead(429).end(), unknown('status 429')],
    ['a cut connection', (response) => response.destroy(), unknown('UND_ERR_SOCKET')],
    ['no HTTP', ({ socket }) => socket!.end('220 smtp.test\r\n'), unknown('HTTPParserError')],
    ['nothing at all', () => {}, unknown('no answer within 0.2 s')],
  ])('the check reports %s', async (_, answer, verdict) => {
    const baseUrl = await startServer((_request, response) => void answer(response));
    expect(await check(baseUrl)).toEqual(verdict);
  });

  test('a redirect is not followed, so the token goes nowhere else', async () => {
    let arrived = 0;
    const elsewhere = await startServer((_, response) => {
      arrived += 1;
      response.writeHead(204).end();
    });
    const baseUrl = await startServer((_, response) => {
      response.writeHead(307, { location: `${elsewhere}/auth_check` }).end();
    });
    expect(await check(baseUrl)).toEqual(unknown('status 307'));
    expect(arrived).toBe(0);
  });

  test('the result is unknown if the service cannot be reached', async () => {
    expect(await check(await refusingAddress())).toEqual(unknown('ECONNREFUSED'));
  });

  test('the result is unknown for a token that cannot be a header, and the token is not repeated', async () => {
    const baseUrl = await startServer((_, response) => void response.writeHead(204).end());
    const verdict = await authCheck({ baseUrl, agent: 'test', proxy: undefined })('bro\nken');
    expect(verdict).toEqual(unknown('UND_ERR_INVALID_ARG'));
  });
});

function check(baseUrl: string) {
  return authCheck({ baseUrl, agent: 'test', proxy: undefined, timeoutMs: 200 })(TOKEN);
}

function refuses(detail: unknown, status = 401) {
  return (response: ServerResponse) =>
    response.writeHead(status).end(JSON.stringify({ type: 'invalid_token', detail }));
}

function refused(detail: string) {
  return { kind: 'refused', detail };
}

function unknown(why: string) {
  return { kind: 'unknown', why };
}
