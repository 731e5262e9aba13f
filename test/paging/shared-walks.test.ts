import { describe, expect, test } from 'vitest';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { type Received, type Reply, honest } from '../support/imitations/scripted.ts';

interface People {
  allPersons: { id: string }[];
}

describe('identical drains at the same time', () => {
  test('50 of them cost one walk', async () => {
    await using gateway = await startGatewayOverFake({ persons: 137 });
    const drains = holdDrains(gateway);
    const answers = startMany(gateway, 50);
    await gateway.upstream.arrived(50 + 1);
    drains.open();
    const ids = gateway.upstream.sandbox.persons.all().map(({ id }) => id);
    for (const { data } of await Promise.all(answers)) {
      expect(data.allPersons.map(({ id }) => id)).toEqual(ids);
    }
    expect(drains.seen()).toHaveLength(3);
  });
});

/** Each also requests a page of its own, whose arrival shows that its drain has begun too. */
function startMany(gateway: GatewayOverFake, count: number, init: RequestInit = {}, from = 1) {
  return Array.from({ length: count }, (_, index) =>
    gateway.ask<People>(
      'query ($mine: Int) { allPersons { id } persons(first: $mine) { items { id } } }',
      { mine: from + index },
      init,
    ),
  );
}

/** Holds back the pages of drains until they are released; answers everything else. */
function holdDrains({ upstream }: GatewayOverFake, field = 'persons') {
  const gate = Promise.withResolvers<void>();
  const isDrain = ({ body }: Received) => body.includes(`${field}(first: $_rs_first`);
  const reply: Reply = async (response, received, sandbox) => {
    if (isDrain(received) && !received.body.includes('"_rs_first":1}')) await gate.promise;
    if (!response.destroyed) await honest(response, received, sandbox);
  };
  upstream.answer(reply);
  return {
    open: () => gate.resolve(),
    seen: () =>
      upstream.received.filter(
        (request) => isDrain(request) && !request.body.includes('"_rs_first":1}'),
      ),
  };
}
