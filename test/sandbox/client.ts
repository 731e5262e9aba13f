import { onTestFinished } from 'vitest';
import { startService } from '../service/service.ts';
import type { Service, ServiceOptions } from '../service/service.ts';

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
export async function start(options: ServiceOptions = {}): Promise<Service> {
  const sandbox = await startService(options);
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

export async function openLink({ tokenLink }: { tokenLink: string }): Promise<TokenSet> {
  return (await (await fetch(tokenLink)).json()) as TokenSet;
}

interface Address {
  readonly url: string;
}

/** Returns why an access token is refused; undefined if it is valid. */
export async function check({ url }: Address, token: string): Promise<string | undefined> {
  const response = await fetch(`${url}/auth_check`, { headers: bearer(token) });
  if (response.status === 204) return undefined;
  return ((await response.json()) as { detail: string }).detail;
}

export function exchange({ url }: Address, refreshToken: string): Promise<Response> {
  return fetch(`${url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken }),
  });
}

export async function refresh(sandbox: Address, refreshToken: string): Promise<TokenSet> {
  return (await (await exchange(sandbox, refreshToken)).json()) as TokenSet;
}

export async function ask<Data>(
  { url }: Address,
  token: string,
  asked: string,
  variables: object = {},
): Promise<GraphqlBody<Data>> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...bearer(token) },
    body: JSON.stringify({ query: asked, variables }),
  });
  return (await response.json()) as GraphqlBody<Data>;
}

/** A client with a valid token that requests pages of persons. */
export async function reader(sandbox: Service): Promise<{
  ask: (variables: object) => Promise<GraphqlBody<{ persons: Page }>>;
  page: (variables?: object) => Promise<Page>;
}> {
  const { access_token } = await openLink(sandbox);
  const askPage = (variables: object) =>
    ask<{ persons: Page }>(sandbox, access_token, query, variables);
  return {
    ask: askPage,
    page: async (variables = {}) => {
      const body = await askPage(variables);
      if (!body.data) throw new Error(JSON.stringify(body.errors));
      return body.data.persons;
    },
  };
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
