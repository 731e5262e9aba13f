import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/sandbox.ts';
import { exchange, openLink, start } from './client.ts';
import { outcomes, rawExchange } from './raw-exchange.ts';

describe('refreshes that are held before they are processed', () => {
  test('a refresh held before processing is not processed until it is released, and is then answered', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    const held = sandbox.tokenAnswers.hold('before');
    const answer = exchange(sandbox, refresh_token);
    await held.arrived;
    expect(outcomes(sandbox)).toEqual(['not-processed']);
    expect((await fetch(sandbox.tokenLink)).status).toBe(200);
    held.release();

    expect((await answer).status).toBe(200);
    expect(outcomes(sandbox)).toEqual(['answered']);
  });

  test('a refresh held before processing lets others pass, and may find that one of them spent its token', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    const held = sandbox.tokenAnswers.hold('before');
    const first = exchange(sandbox, refresh_token);
    await held.arrived;
    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
    held.release();

    expect((await first).status).toBe(400);
    expect(outcomes(sandbox)).toEqual(['invalid-grant', 'answered']);
  });

  test('a refresh held before processing is never processed if its client has left', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    const held = sandbox.tokenAnswers.hold('before');
    const client = rawExchange(sandbox, refresh_token);
    await held.arrived;
    client.leave();
    await held.left;
    held.release();

    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
    expect(outcomes(sandbox)).toEqual(['not-processed', 'answered']);
  });
});

describe('refreshes that are held after they are processed', () => {
  test('a refresh held after processing is processed on arrival, and answered when it is released', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    const held = sandbox.tokenAnswers.hold('after');
    const answer = exchange(sandbox, refresh_token);
    await held.arrived;
    expect(outcomes(sandbox)).toEqual(['spent-in-silence']);
    expect((await exchange(sandbox, refresh_token)).status).toBe(400);
    held.release();

    expect((await answer).status).toBe(200);
    expect(outcomes(sandbox)).toEqual(['answered', 'invalid-grant']);
  });

  test('the token of a refresh held after processing is spent even if its client has left', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    const held = sandbox.tokenAnswers.hold('after');
    const client = rawExchange(sandbox, refresh_token);
    await held.arrived;
    client.leave();
    await held.left;
    held.release();

    expect((await exchange(sandbox, refresh_token)).status).toBe(400);
    expect(outcomes(sandbox)).toEqual(['spent-in-silence', 'invalid-grant']);
  });
});

describe('what a hold applies to', () => {
  test('a hold that was released before a request arrives does not hold the request', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    sandbox.tokenAnswers.hold('before').release();

    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
  });

  test('the end of an answer is not taken for a client that left', async () => {
    const sandbox = await start();
    const held = sandbox.tokenAnswers.hold('after');
    const { received } = rawExchange(sandbox, 'made up');
    let hasLeft = false;
    void held.left.then(() => (hasLeft = true));
    await held.arrived;
    held.release();
    expect(await received).toMatch(/^HTTP\/1\.1 400 /);
    await turn();

    expect(hasLeft).toBe(false);
  });

  test('a hold takes one request, and the next hold takes the next', async () => {
    const sandbox = await start();
    const holds = [sandbox.tokenAnswers.hold('before'), sandbox.tokenAnswers.hold('after')];
    const answers = [];
    for (const held of holds) {
      answers.push(exchange(sandbox, 'made up'));
      await held.arrived;
    }
    expect(outcomes(sandbox)).toEqual(['not-processed', 'invalid-grant']);
    for (const held of holds) held.release();

    for (const answer of answers) expect((await answer).status).toBe(400);
  });

  test('a hold can be combined with a fault', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    const held = sandbox.tokenAnswers.hold('after');
    sandbox.tokenAnswers.next('drop-after');
    const { received } = rawExchange(sandbox, refresh_token);
    await held.arrived;
    held.release();

    expect(await received).toBe('');
    expect(outcomes(sandbox)).toEqual(['spent-in-silence']);
  });

  test('a hold does not keep the sandbox from closing', async () => {
    const sandbox = await startSandbox();
    const held = sandbox.tokenAnswers.hold('before');
    const { received } = rawExchange(sandbox, 'made up');
    await held.arrived;
    await sandbox.close();

    expect(await received).toBe('');
  });
});

describe('the latency of the token endpoint', () => {
  test('the token is spent before the latency of the token endpoint begins', async () => {
    const sandbox = await start({ tokenLatency: 3_600_000 });
    const { refresh_token } = await openLink(sandbox);
    const processed = sandbox.tokenAnswers.hold('after');
    const client = rawExchange(sandbox, refresh_token);
    await processed.arrived;
    processed.release();

    expect(outcomes(sandbox)).toEqual(['spent-in-silence']);
    expect((await fetch(sandbox.tokenLink)).status).toBe(404);
    client.leave();
  });

  test('the latency of the token endpoint delays the answer to a refresh', async () => {
    const sandbox = await start({ tokenLatency: 120 });
    const { refresh_token } = await openLink(sandbox);
    const begun = performance.now();
    expect((await exchange(sandbox, refresh_token)).status).toBe(200);

    expect(performance.now() - begun).toBeGreaterThan(100);
    expect(outcomes(sandbox)).toEqual(['answered']);
  });
});
