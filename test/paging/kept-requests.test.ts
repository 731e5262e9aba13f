import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
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
async function answered({ gateway }: TestGateway, query: string): Promise<WeakRef<Request>> {
  const request = requestFor(query);
  const { data } = (await (await gateway.handler.fetch(request)).json()) as { data: unknown };
  expect(data).toMatchObject({ _entities: [{ id: expect.any(String) }] });
  return new WeakRef(request);
}

function requestFor(query: string): Request {
  return new Request('http://localhost/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
}
