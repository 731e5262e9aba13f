import { createHash } from 'node:crypto';
import type { BenchSandbox } from './services.ts';
import type { SandboxState } from './processes/sandbox-process.ts';

export interface GraphqlEndpoint {
  readonly endpoint: string;
  /** The access token for the sandbox. A gateway uses its own. */
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface PersonPage {
  readonly items: readonly { id: string }[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}

export const PERSONS = /* GraphQL */ `
  query ($first: Int, $after: String) {
    persons(first: $first, after: $after) {
      items {
        id
        firstName
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`;

/** Returns the data of a query. Throws if the answer has errors: its time would mean nothing. */
export async function ask<T>(
  target: GraphqlEndpoint,
  query: string,
  variables: Record<string, unknown> = {},
): Promise<T> {
  const { endpoint } = target;
  const response = await post(target, { query, variables });
  const { data, errors } = (await response.json()) as { data: T; errors?: { message: string }[] };
  if (errors) throw new Error(`${endpoint} answered: ${errors[0]!.message}`);
  return data;
}

export async function post(
  { endpoint, token, headers }: GraphqlEndpoint,
  body: { query: string; variables?: Record<string, unknown> },
  { accept = 'application/json', signal }: { accept?: string; signal?: AbortSignal } = {},
): Promise<Response> {
  return await fetch(endpoint, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept,
      ...headers,
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

export async function askPage(
  asking: GraphqlEndpoint,
  first: number,
  after: string | null = null,
): Promise<PersonPage> {
  return (await ask<{ persons: PersonPage }>(asking, PERSONS, { first, after })).persons;
}

/** Milliseconds. */
export async function timed(action: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await action();
  return performance.now() - start;
}

/** Throws unless these are the persons of the sandbox, in its order: the speed of a wrong answer means nothing. */
export async function mustBeTheList(
  sandbox: BenchSandbox,
  ids: readonly string[],
): Promise<SandboxState> {
  const state = await sandbox.tell({ do: 'look' });
  const { persons, digest } = state;
  const got = createHash('sha256');
  for (const id of ids) got.update(`${id}\n`);
  if (got.digest('hex') === digest) return state;
  throw new Error(`The ${ids.length} persons that came are not the ${persons} of the sandbox.`);
}
