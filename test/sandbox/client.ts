import { onTestFinished } from 'vitest';
import { startSandbox } from '../../sandbox/sandbox.ts';
import type { Sandbox, SandboxOptions } from '../../sandbox/sandbox.ts';

export interface TokenSet {
  name: string;
  access_token: string;
  expires_in: number;
  refresh_token: string;
  refresh_token_expires_in: number;
  token_type: string;
  created_at?: number;
}

export interface Page {
  items: { id: string; firstName: string }[];
  pageInfo: { first: number; hasNextPage: boolean; endCursor: string | null };
}

export interface GraphqlBody<Data> {
  data?: Data | null;
  errors?: { message: string; path?: string[] }[];
}

/** A sandbox that lives as long as the test. */
export async function start(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox(options);
  onTestFinished(() => sandbox.close());
  return sandbox;
}

/** A clock that advances only when a test says so. */
export class Clock {
  #milliseconds = Date.UTC(2026, 0, 1);
  readonly now = (): number => this.#milliseconds;

  pass(milliseconds: number): void {
    this.#milliseconds += milliseconds;
  }
}

export const second = 1000;
export const day = 86_400 * second;

export async function openLink(sandbox: Sandbox): Promise<TokenSet> {
  return (await (await fetch(sandbox.tokenLink)).json()) as TokenSet;
}

export function check(sandbox: Sandbox, accessToken: string): Promise<Response> {
  return fetch(`${sandbox.url}/auth_check`, { headers: bearer(accessToken) });
}

export function grant(sandbox: Sandbox, fields: Record<string, string>): Promise<Response> {
  return fetch(`${sandbox.url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams(fields),
  });
}

export function exchange(sandbox: Sandbox, refreshToken: string): Promise<Response> {
  return grant(sandbox, { grant_type: 'refresh_token', refresh_token: refreshToken });
}

export async function refresh(sandbox: Sandbox, refreshToken: string): Promise<TokenSet> {
  return (await (await exchange(sandbox, refreshToken)).json()) as TokenSet;
}

export function post(
  sandbox: Sandbox,
  accessToken: string,
  body: string,
  init: { headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Response> {
  return fetch(`${sandbox.url}/graphql`, {
    ...init,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...bearer(accessToken), ...init.headers },
    body,
  });
}

/** A client with a valid token that requests pages of persons. */
export async function reader(sandbox: Sandbox): Promise<{
  ask: (variables: Record<string, unknown>) => Promise<GraphqlBody<{ persons: Page }>>;
  page: (variables?: Record<string, unknown>) => Promise<Page>;
}> {
  const { access_token } = await openLink(sandbox);
  const ask = async (
    variables: Record<string, unknown>,
  ): Promise<GraphqlBody<{ persons: Page }>> => {
    const answer = await post(sandbox, access_token, JSON.stringify({ query, variables }));
    return (await answer.json()) as GraphqlBody<{ persons: Page }>;
  };
  const page = async (variables: Record<string, unknown> = {}): Promise<Page> => {
    const body = await ask(variables);
    if (!body.data) throw new Error(JSON.stringify(body.errors));
    return body.data.persons;
  };
  return { ask, page };
}

const query = /* GraphQL */ `
  query Page($first: Int, $after: String) {
    persons(first: $first, after: $after) {
      items {
        id
        firstName
      }
      pageInfo {
        first
        hasNextPage
        endCursor
      }
    }
  }
`;

function bearer(accessToken: string): Record<string, string> {
  return { authorization: `Bearer ${accessToken}` };
}
