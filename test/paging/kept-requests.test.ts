import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';
import { after, honest } from '../support/imitations/scripted.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

test('a walk that looks for records keeps no request whose answer was sent', async () => {
  await using gateway = await startGatewayOverSandbox({ persons: 300 });
  const { data } = await gateway.ask<{ persons: { items: { id: string }[] } }>(
    '{ persons(first: 50) { items { id } } }',
  );
  const { id } = data.persons.items.at(-1)!;
  const query = `{ _entities(representations: [{ __typename: "Person", id: "${id}" }]) { ... on Person { id } } }`;
  const request = await answered(gateway, query);
  expect(await isCollected(request)).toBe(true);
});

test('a shared walk keeps no request of a caller who left, also of the one who began it', async () => {
  await using gateway = await startGatewayOverFake({ persons: 200 });
  const gate = Promise.withResolvers<void>();
  gateway.upstream.answer(honest, after(gate.promise, honest));
  const query = '{ allPersons { id } }';
  const leaving = new AbortController();
  const request = begun(gateway, query, leaving.signal);
  await gateway.upstream.arrived(2);
  const stays = gateway.ask<{ allPersons: unknown[] }>(query);
  await gateway.ask('{ __typename }');
  leaving.abort();
  expect(await isCollected(request)).toBe(true);
  gate.resolve();
  expect((await stays).data.allPersons).toHaveLength(200);
  expect(gateway.upstream.received).toHaveLength(5);
});

/** Whether it is collected within a few turns of the event loop. */
async function isCollected(reference: WeakRef<object>): Promise<boolean> {
  for (let turn = 0; turn < 20; turn += 1) {
    // What a WeakRef referred to in this turn is not collected before its end.
    await new Promise(setImmediate);
    collect();
    if (!reference.deref()) return true;
  }
  return false;
}

/** In a function of its own, so that nothing else refers to the request when it returns. */
function begun({ gateway }: TestGateway, query: string, signal: AbortSignal): WeakRef<Request> {
  const request = requestFor(query, signal);
  gateway.handler.fetch(request).catch(() => {});
  return new WeakRef(request);
}

/** As `begun`; waits for the answer. */
async function answered({ gateway }: TestGateway, query: string): Promise<WeakRef<Request>> {
  const request = requestFor(query);
  const { data } = (await (await gateway.handler.fetch(request)).json()) as { data: unknown };
  expect(data).toMatchObject({ _entities: [{ id: expect.any(String) }] });
  return new WeakRef(request);
}

function requestFor(query: string, signal?: AbortSignal): Request {
  return new Request('http://localhost/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
    ...(signal && { signal }),
  });
}
