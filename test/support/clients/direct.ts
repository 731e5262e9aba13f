import type { GraphQLFormattedError } from 'graphql';
import type { startGatewayOverSandbox } from '../gateway/gateway.ts';

/** Sends a query directly to the service, with the gateway's own token. */
export async function askDirectly(
  { store, sandbox }: Awaited<ReturnType<typeof startGatewayOverSandbox>>,
  { query, variables }: { query: string; variables: Record<string, unknown> },
): Promise<{ data?: Record<string, unknown> | null; errors?: GraphQLFormattedError[] }> {
  const { state } = await store.read();
  const response = await fetch(`${sandbox.url}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${state?.pair.accessToken}`,
    },
    body: JSON.stringify({ query, variables }),
  });
  if (response.status !== 200) throw new Error(`The upstream answered ${response.status}.`);
  return response.json() as Promise<never>;
}
