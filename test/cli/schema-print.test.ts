import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';
import { runProgram } from '../support/processes/process.ts';

test('schema print prints only the schema that callers see', async () => {
  const { code, stdout, stderr } = await runProgram(['schema', 'print'], { unbundled: true });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const query = buildSchema(stdout).getQueryType()!.getFields();
  expect(Object.keys(query)).toEqual(
    expect.arrayContaining(['allPersons', 'persons', 'personsConnection']),
  );
});
