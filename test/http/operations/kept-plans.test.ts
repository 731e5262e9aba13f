import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../../support/gateway.ts';
import { lookAtHeld } from '../../soak/held.ts';

const MEGABYTE = 1024 * 1024;
const TWO_TO_THE = 5;

test('the variants of a large operation do not pile up in memory', async () => {
  await using gateway = await startGatewayOverSandbox(
    { persons: 1 },
    { config: { maxAliases: 10_000, pagesPerMinute: 0 } },
  );
  const switches = Array.from({ length: TWO_TO_THE }, (_, at) => `on${at}`);
  const fields = Array.from({ length: 300 }, (_, at) => `a${at}: firstName`).join(' ');
  const lists = Array.from({ length: 30 }, (_, at) => `l${at}: allPersons(limit: 1) { ...F }`);
  const query = `query (${switches.map((name) => `$${name}: Boolean!`).join(' ')}) {
    ${switches.map((name) => `${name}: __typename @include(if: $${name})`).join(' ')}
    ${lists.join(' ')}
  } fragment F on Person { ${fields} }`;
  const ask = async (variant: number) => {
    const values = switches.map((name, at) => [name, (variant & (1 << at)) > 0]);
    const { data, errors } = await gateway.ask(query, Object.fromEntries(values));
    expect(errors).toBeUndefined();
    expect(Object.keys(data as object).length).toBeGreaterThanOrEqual(lists.length);
  };
  await ask(0);
  const before = lookAtHeld().heap;
  for (let variant = 1; variant < 2 ** TWO_TO_THE; variant += 1) await ask(variant);
  // All of them together would hold 180 MB.
  expect(lookAtHeld().heap - before).toBeLessThan(120 * MEGABYTE);
}, 120_000);
