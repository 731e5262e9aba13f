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

interface Tab {
  readonly query: string;
  readonly variables?: string;
}

async function tabsOf({ fetch }: TestGateway): Promise<Tab[]> {
  const page = await (await fetch('/graphql', { headers: { accept: 'text/html' } })).text();
  const [, settings] = /^ +\.\.\.(\{"title".*\}),$/m.exec(page)!;
  return (JSON.parse(settings!) as { defaultTabs: Tab[] }).defaultTabs;
}
