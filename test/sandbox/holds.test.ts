import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { exchange, openLink, start } from './client.ts';
import { outcomes, rawExchange } from './raw-exchange.ts';

describe('a refresh held before', () => {
  test('is not processed until it is released, and then answered', async () => {
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

  test('lets others pass, and finds its token spent by one of them', async () => {
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

  test('whose client has left is never processed', async () => {
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

describe('a refresh held after', () => {
  test('is processed on arrival, and answered when it is released', async () => {
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

  test('whose client has left stays spent in silence', async () => {
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

describe('a hold', () => {
  test('that was released before a request came does not hold it', async () => {
    const sandbox = await start();
    const { refresh_token } = await openLink(sandbox);
    sandbox.tokenAnswers.hold('before').release();

    expect((await exchange(sandbox, refresh_token)).status).toBe(200);
  });

  test('does not mistake the end of an answer for a client that left', async () => {
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

  test('takes one request, and the next hold the next', async () => {
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

  test('goes together with a fault', async () => {
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

  test('does not keep a sandbox from closing', async () => {
    const sandbox = await startSandbox();
    const held = sandbox.tokenAnswers.hold('before');
    const { received } = rawExchange(sandbox, 'made up');
    await held.arrived;
    await sandbox.close();

    expect(await received).toBe('');
  });
});

describe('the latency of the token endpoint', () => {
  test('comes after the token is spent', async () => {
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

  test('delays the answer to a refresh', async () => {
    const sandbox = await start({ tokenLatency: 120 });
    const { refresh_token } = await openLink(sandbox);
    const begun = performance.now();
    expect((await exchange(sandbox, refresh_token)).status).toBe(200);

    expect(performance.now() - begun).toBeGreaterThan(100);
    expect(outcomes(sandbox)).toEqual(['answered']);
  });
});
