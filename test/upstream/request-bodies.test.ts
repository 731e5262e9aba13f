import { expect, test } from 'vitest';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { makeExecutableSchema, personPages } from '../service/lists.ts';
import { after, honest } from '../service/replies.ts';

const SDL = `
  type Query { persons(first: Int, after: String, name: String): PersonPage! }
  type Person { id: ID! }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }`;

const HELD = /^recruiting_request_bytes (\d+)/m;

test('each request of an operation counts once, also while it waits for others of the operation', async () => {
  const schema = makeExecutableSchema(SDL, { Query: { persons: personPages(['1', '2']) } });
  await using gateway = await startGatewayOverService(
    { schema },
    { snapshot: SDL, config: { requestBytes: 12_000_000, maxAliases: 100 } },
  );
  const { service } = gateway;
  const heldBytes = async () => Number(HELD.exec(await gateway.gateway.metrics.text())?.[1]);
  const ask = (aliases: number, name: string) => {
    const fields = Array.from(
      { length: aliases },
      (_, at) => `a${at}: personsConnection(first: ${at + 1}, name: $name) { nodes { id } }`,
    );
    return gateway.ask(`query ($name: String) { ${fields.join(' ')} }`, { name });
  };
  const held = async (aliases: number, name: string) => {
    const gate = Promise.withResolvers<void>();
    service.answer(after(gate.promise, honest));
    const before = service.received.length;
    const answered = ask(aliases, name);
    await Promise.race([service.arrived(before + Math.min(aliases, 8)), answered]);
    const bytes = await heldBytes();
    gate.resolve();
    return { bytes, ...(await answered) };
  };

  const long = 'x'.repeat(100_000);
  /** How many bytes each byte of the variable takes. */
  const copies = async (aliases: number) => {
    const [short, full] = [await held(aliases, ''), await held(aliases, long)];
    expect([short.errors, full.errors]).toEqual([undefined, undefined]);
    return (full.bytes - short.bytes) / long.length;
  };
  expect((await copies(21)) - (await copies(1))).toBeCloseTo(20, 0);
  expect(await heldBytes()).toBe(0);

  const many = await held(50, 'x'.repeat(400_000));
  expect(many.errors).toContainEqual(
    expect.objectContaining({ extensions: expect.objectContaining({ code: 'RATE_LIMITED' }) }),
  );
  expect(await heldBytes()).toBe(0);
});
