import { expect, test } from 'vitest';
import { idOf } from '../../../sandbox/person-list.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../../support/gateway/over-fake.ts';
import { honest, type Reply } from '../../support/imitations/scripted.ts';

test('with a page index, 1,000 representations in 100 pages cost 100 requests, in flight at the same time', async () => {
  await using gateway = await startDrained(4_800);
  const { upstream } = gateway;
  // The first page has 50 records, and the others have 48.
  const positions = Array.from(
    { length: 1_000 },
    (_, at) => Math.floor(at / 10) * 48 + 2 + (at % 10),
  );
  const before = upstream.received.length;
  const gate = upstream.arrived(before + 8);
  let inFlight = 0;
  let most = 0;
  const counting: Reply = async (...exchange) => {
    inFlight += 1;
    most = Math.max(most, inFlight);
    await honest(...exchange);
    inFlight -= 1;
  };
  upstream.answer((...exchange) => gate.then(() => counting(...exchange)));
  const { data, errors } = await gateway.ask(
    'query ($all: [_Any!]!) { _entities(representations: $all) { ... on Person { id firstName } } }',
    { all: positions.map((at) => ({ __typename: 'Person', id: idOf(at) })) },
  );
  expect(errors).toBeUndefined();
  expect(data).toEqual({ _entities: personsAt(gateway, positions) });
  expect(upstream.received.length - before).toBe(100);
  expect(most).toBe(8);
});

test('fields of one operation that request the same of one page share its request', async () => {
  await using gateway = await startDrained(200);
  const before = gateway.upstream.received.length;
  const { data } = await gateway.ask(
    `{ a: person(id: "${idOf(1)}") { id firstName } b: person(id: "${idOf(2)}") { id firstName } }`,
  );
  const [a, b] = personsAt(gateway, [1, 2]);
  expect(data).toEqual({ a, b });
  expect(gateway.upstream.received.length - before).toBe(1);
});

/** A gateway that has drained the list. */
async function startDrained(persons: number): Promise<GatewayOverFake> {
  const gateway = await startGatewayOverFake({ persons });
  await gateway.ask('{ allPersons { id } }');
  return gateway;
}

function personsAt({ upstream }: GatewayOverFake, positions: readonly number[]) {
  const all = new Map(upstream.sandbox.persons.all().map((each) => [each.id, each]));
  return positions.map((at) => {
    const { id, firstName } = all.get(idOf(at))!;
    return { id, firstName };
  });
}
