import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

test('a service whose fields return results is served without adapters.json, every list whole', async () => {
  await using gateway = await startGatewayOverSandbox(
    { schema: 'results' },
    { snapshot: readFileSync('schema/results.graphql', 'utf8') },
  );
  const { data, errors } = await gateway.ask<Record<string, unknown[]>>(`{
    allPersons { id firstName source { id name } }
    allVacancies { id title }
    allManagers { id name email }
    allPersonSources { id name }
    allResponses { url person { id } workflowStatus { id } }
  }`);
  expect(errors).toBeUndefined();
  expect(Object.entries(data).map(([name, list]) => [name, list.length])).toEqual([
    ['allPersons', 137],
    ['allVacancies', 64],
    ['allManagers', 73],
    ['allPersonSources', 320],
    ['allResponses', 274],
  ]);
  const { errors: below, data: nested } = await gateway.ask(`{
    person(id: 1) { ... on PersonItem { allHistory { id createdAt } } }
    vacancy(id: 1) { ... on VacancyItem { personsConnection(first: 100) { nodes { id } } } }
  }`);
  expect(below).toBeUndefined();
  expect(nested).toEqual({
    person: { allHistory: expect.toSatisfy((list: unknown[]) => list.length === 120) },
    vacancy: {
      personsConnection: { nodes: expect.toSatisfy((list: unknown[]) => list.length === 94) },
    },
  });
});
