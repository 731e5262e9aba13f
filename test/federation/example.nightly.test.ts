import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { askAt } from '../support/gateway/ask-at.ts';
import { startNpm } from '../support/processes/process.ts';
import { refusingAddress } from '../support/listening.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('examples/supergraph: one command starts two subgraphs and a router that answers one query across both', async () => {
  const { port } = new URL(await refusingAddress());
  using folder = temporaryFolder();
  const env = { PORT: port, TMPDIR: folder.path };
  await using program = startNpm(['run', '-s', 'supergraph'], { env });
  const [, printed] = await program.printed(/^(\{"data".*\})$/m);
  expect(JSON.parse(printed!)).toEqual({
    data: { allPersons: Array.from({ length: 3 }, () => PERSON) },
  });

  const [, router] = await program.printed(/^router +(\S+)$/m);
  expect(router).toBe(`http://127.0.0.1:${port}/graphql`);
  const { data } = await askAt(router!, '{ allPersons(limit: 1) { id firstName } }');
  const [person] = data!['allPersons'] as [{ id: string; firstName: string }];
  const query =
    'query ($of: [ID!]!) { payslips(of: $of) { amount person { firstName salaryBand } } }';
  expect(await askAt(router!, query, { of: [person.id] })).toEqual({
    data: { payslips: [{ amount: 4_000, person: { ...PERSON, firstName: person.firstName } }] },
  });

  const [, recruiting] = await program.printed(/^recruiting +(\S+)$/m);
  expect(await askAt(recruiting!, '{ _service { sdl } }')).toMatchObject({
    errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
  });

  const [, metrics] = await program.printed(/^metrics +(\S+)$/m);
  expect(await (await fetch(metrics!)).text()).toMatch(/^recruiting_requests_total\{/m);

  expect((await program.stop()).code).toBe(0);
  await expect.poll(() => program.isAlive, { timeout: 20_000 }).toBe(false);
  expect(readdirSync(folder.path)).toEqual([]);
});

const PERSON = { firstName: expect.any(String), salaryBand: expect.stringMatching(/^[ABC]$/) };
