import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { honest, json, type Reply } from '../support/imitations/scripted.ts';

const ALL = '{ allPersons { id } }';
const THROTTLED = { message: 'Throttled', extensions: { code: 'THROTTLED' } };

/** The services' ways to limit the rate of requests beyond a bucket of 4, which refills by one each 150 ms. */
const services: [string, Reply][] = [
  ['status 429', json({}, 429)],
  ['a GraphQL error in a 200', json({ errors: [THROTTLED] })],
  ['an error beside empty data', json({ data: { persons: null }, errors: [THROTTLED] })],
];

test.each(services)(
  'a service that limits the rate of requests is waited for, and drains are whole: %s',
  async (_what, refused) => {
    // The waits are part of the promise here, so the clock is real.
    await using gateway = await startGatewayOverFake({ persons: 500 }, { clock: systemClock });
    let tokens = 4;
    let refilledAt = performance.now();
    let refusals = 0;
    gateway.upstream.answer((...exchange) => {
      const refilled = Math.floor((performance.now() - refilledAt) / 150);
      refilledAt += refilled * 150;
      tokens = Math.min(4, tokens + refilled);
      if (tokens > 0) {
        tokens -= 1;
        return honest(...exchange);
      }
      refusals += 1;
      return refused(...exchange);
    });
    const ids = gateway.upstream.sandbox.persons.all().map(({ id }) => id);
    // The second time, pages are requested in parallel.
    for (const _time of [1, 2]) {
      const { data, errors } = await gateway.ask<{ allPersons: { id: string }[] }>(ALL);
      expect(errors).toBeUndefined();
      expect(data.allPersons.map(({ id }) => id)).toEqual(ids);
    }
    expect(refusals).toBeGreaterThan(0);
  },
);
