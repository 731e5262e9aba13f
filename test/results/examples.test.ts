import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';

const RESULTS = { snapshot: readFileSync('schema/results.graphql', 'utf8') };
const SERVICE = { schema: 'results' } as const;

test('the examples of GraphiQL are answered by a service whose fields return results', async () => {
  await using gateway = await startGatewayOverSandbox(SERVICE, RESULTS);
  for (const { query, variables } of await tabsOf(gateway)) {
    const { data, errors } = await gateway.ask(query, JSON.parse(variables ?? '{}'));
    expect(errors).toBeUndefined();
    expect(JSON.stringify(data)).toMatch(/"name":"|"firstName":"/);
  }
});

test('the examples of results are valid under a prefix, and where errors have other fields of the same names', async () => {
  const snapshot = RESULTS.snapshot
    .replaceAll(/type (PersonError|ManagersError) \{/g, 'type $1 {\n  id: String\n  items: Int\n')
    .replace('type VacancyError {', 'type VacancyError {\n  title: Int\n');
  await using gateway = await startGatewayOverSandbox(SERVICE, {
    snapshot,
    config: { schemaPrefix: 'Recruiting' },
  });
  const tabs = await tabsOf(gateway);
  expect(tabs.some(({ query }) => query.includes('recruiting'))).toBe(true);
  for (const { query, variables } of tabs) {
    const { errors = [] } = await gateway.ask(query, JSON.parse(variables ?? '{}'));
    // The sandbox does not have the added fields; the gateway has no objection.
    expect(errors.filter(({ message }) => !message.startsWith('Cannot query field'))).toEqual([]);
  }
});

interface Tab {
  readonly query: string;
  readonly variables?: string;
}

async function tabsOf({ fetch }: TestGateway): Promise<Tab[]> {
  const page = await (await fetch('/graphql', { headers: { accept: 'text/html' } })).text();
  const [, settings] = /^ +\.\.\.(\{"title".*\}),$/m.exec(page)!;
  return (JSON.parse(settings!) as { defaultTabs: Tab[] }).defaultTabs;
}
