import { describe, expect, test } from 'vitest';
import { exchange, grant, openLink, refresh, start } from './client.ts';
import { cut, outcomes, rawExchange } from './raw-exchange.ts';

describe('refreshes that are dropped before they are processed', () => {
  test('a refresh dropped before processing gets no byte, and its token can be used again', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    sandbox.tokenAnswers.next('drop-before');

    expect(await rawExchange(sandbox, refresh_token).received).toBe('');
    expect(outcomes(sandbox)).toEqual(['not-processed']);
    expect(sandbox.stats.refreshes).toBe(0);
    expect((await fetch(sandbox.tokenLink)).status).toBe(200);
    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
  });
});

describe('refreshes that are dropped after they are processed', () => {
  test('a refresh dropped after processing gets no byte, and its token is spent', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    sandbox.tokenAnswers.next('drop-after');

    expect(await rawExchange(sandbox, refresh_token).received).toBe('');
    expect(outcomes(sandbox)).toEqual(['spent-in-silence']);
    expect(sandbox.stats.refreshes).toBe(1);
    expect((await fetch(sandbox.tokenLink)).status).toBe(404);
    expect((await exchange(sandbox, refresh_token)).status).toBe(400);
    expect(outcomes(sandbox)).toEqual(['spent-in-silence', 'invalid-grant']);
  });

  test('a refresh dropped after processing is recorded as an invalid grant if its token was not valid', async () => {
    const sandbox = await start();
    sandbox.tokenAnswers.next('drop-after');

    expect(await rawExchange(sandbox, 'made up').received).toBe('');
    expect(outcomes(sandbox)).toEqual(['invalid-grant']);
  });
});

describe('refreshes whose answer is cut', () => {
  test('a refresh whose answer is cut gets the headers and half of the body, and its token is spent', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    sandbox.tokenAnswers.next('cut-body');
    const received = await rawExchange(sandbox, refresh_token).received;
    const [head = '', body = ''] = received.split('\r\n\r\n');
    const promised = Number(/content-length: (\d+)/i.exec(head)?.[1]);

    expect(head).toMatch(/^HTTP\/1\.1 200 /);
    expect(body).toMatch(/^\{"name"/);
    expect(body).toHaveLength(Math.floor(promised / 2));
    expect(outcomes(sandbox)).toEqual(['spent-in-silence']);
    expect((await exchange(sandbox, refresh_token)).status).toBe(400);
  });

  test('an answer that is cut has a status for fetch, and no body that can be read', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    sandbox.tokenAnswers.next('cut-body');
    const answer = await exchange(sandbox, refresh_token);

    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow('terminated');
  });
});

describe('refreshes that get another answer', () => {
  test('a refresh that gets another answer gets its status, body and headers, and its token is not spent', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    sandbox.tokenAnswers.next({
      status: 503,
      body: '<h1>Down</h1>',
      headers: { 'Content-Type': 'text/html', 'retry-after': '7' },
    });
    const answer = await exchange(sandbox, refresh_token);

    expect(answer.status).toBe(503);
    expect(answer.headers.get('content-type')).toBe('text/html');
    expect(answer.headers.get('retry-after')).toBe('7');
    expect(await answer.text()).toBe('<h1>Down</h1>');
    expect(outcomes(sandbox)).toEqual(['not-processed']);
    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
  });

  test('another answer is JSON by default, and has no body if none is given', async () => {
    const sandbox = await start();
    sandbox.tokenAnswers.next({ status: 200, body: '{}' }, { status: 500 });
    const json = await exchange(sandbox, 'made up');
    const empty = await exchange(sandbox, 'made up');

    expect(json.headers.get('content-type')).toMatch(/^application\/json\b/);
    expect(await json.json()).toEqual({});
    expect(empty.status).toBe(500);
    expect(empty.headers.get('content-type')).toBeNull();
    expect(await empty.text()).toBe('');
    expect(outcomes(sandbox)).toEqual(['not-processed', 'not-processed']);
  });
});

describe('faults', () => {
  test('each fault applies to one request, in order, and then answers are normal again', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    sandbox.tokenAnswers.next({ status: 500 }, 'drop-before');
    sandbox.tokenAnswers.next({ status: 429 });

    expect((await exchange(sandbox, refresh_token)).status).toBe(500);
    await expect(exchange(sandbox, refresh_token)).rejects.toThrow(cut);
    expect((await exchange(sandbox, refresh_token)).status).toBe(429);
    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
  });

  test('a fault of every n-th request repeats, and does not affect the others', async () => {
    const sandbox = await start();
    sandbox.tokenAnswers.every(3, { status: 503 });
    expect(await statuses(sandbox, 7)).toEqual([400, 400, 503, 400, 400, 503, 400]);
  });

  test('faults of the next requests come first, and these requests are not counted as an n-th', async () => {
    const sandbox = await start();
    sandbox.tokenAnswers.every(2, { status: 503 });
    sandbox.tokenAnswers.next({ status: 500 }, { status: 501 });
    expect(await statuses(sandbox, 5)).toEqual([500, 501, 400, 503, 400]);
  });

  test('two intervals that coincide take one request each', async () => {
    const sandbox = await start();
    sandbox.tokenAnswers.every(3, { status: 503 });
    sandbox.tokenAnswers.every(3, { status: 502 });
    expect(await statuses(sandbox, 7)).toEqual([400, 400, 503, 502, 400, 503, 502]);
  });

  test('an interval that was delayed once is not delayed after that', async () => {
    const sandbox = await start();
    sandbox.tokenAnswers.every(2, { status: 503 });
    sandbox.tokenAnswers.every(3, { status: 502 });
    expect(await statuses(sandbox, 9)).toEqual([400, 503, 502, 503, 400, 503, 502, 503, 502]);
  });

  test('an invalid interval is refused', async () => {
    const { tokenAnswers } = await start();
    for (const n of [0, -1, 1.5, Number.NaN]) {
      expect(() => tokenAnswers.every(n, 'drop-before')).toThrow(RangeError);
    }
  });

  test('after clear(), no fault or hold applies', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    sandbox.tokenAnswers.next('drop-before');
    sandbox.tokenAnswers.every(1, 'drop-after');
    sandbox.tokenAnswers.hold('before');
    sandbox.tokenAnswers.clear();

    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
  });

  test('faults apply to the token endpoint only', async () => {
    const sandbox = await start();
    sandbox.tokenAnswers.every(1, 'drop-before');

    expect((await fetch(sandbox.tokenLink)).status).toBe(200);
    expect((await fetch(`${sandbox.url}/auth_check`)).status).toBe(401);
    expect((await fetch(`${sandbox.url}/oauth/token`)).status).toBe(405);
  });
});

describe('the exchanges', () => {
  test('the exchanges are listed in order of arrival, with the outcome of each', async () => {
    const sandbox = await start();
    expect(sandbox.exchanges).toEqual([]);
    const first = await openLink(sandbox);
    const second = await refresh(sandbox, first.refresh_token);
    await exchange(sandbox, first.refresh_token);
    await grant(sandbox, { grant_type: 'password' });
    sandbox.tokenAnswers.next('cut-body');
    await rawExchange(sandbox, second.refresh_token).received;

    expect(sandbox.exchanges).toEqual([
      { refreshToken: first.refresh_token, outcome: 'answered' },
      { refreshToken: first.refresh_token, outcome: 'invalid-grant' },
      { refreshToken: '', outcome: 'not-processed' },
      { refreshToken: second.refresh_token, outcome: 'spent-in-silence' },
    ]);
  });
});

async function statuses(sandbox: Awaited<ReturnType<typeof start>>, count: number) {
  const seen: number[] = [];
  while (seen.length < count) seen.push((await exchange(sandbox, 'made up')).status);
  return seen;
}

describe('refreshes whose answer is rewritten', () => {
  test('a refresh whose answer is rewritten gets it rewritten, and its token is spent', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    sandbox.tokenAnswers.next((json) => ({
      status: 203,
      headers: { 'content-type': 'text/plain' },
      body: Buffer.from(`\uFEFF${json}`, 'utf16le'),
    }));
    const response = await exchange(sandbox, refresh_token);
    expect([response.status, response.headers.get('content-type')]).toEqual([203, 'text/plain']);
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.toString('utf16le')).toContain('"refresh_token":');
    expect(outcomes(sandbox)).toEqual(['answered']);
    expect((await exchange(sandbox, refresh_token)).status).toBe(400);
  });
});
