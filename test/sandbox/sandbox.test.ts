import { readFileSync } from 'node:fs';
import {
  buildClientSchema,
  buildSchema,
  getIntrospectionQuery,
  introspectionFromSchema,
  lexicographicSortSchema,
  printSchema,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../../sandbox/sandbox.ts';
import { startService } from '../service/service.ts';
import { askAt } from '../support/gateway/ask-at.ts';
import { SECOND } from '../support/random/manual-clock.ts';

const PAGE = `query ($first: Int, $after: String) {
  persons(first: $first, after: $after) { items { id } pageInfo { first hasNextPage endCursor } }
}`;

interface Page {
  readonly persons: {
    readonly items: readonly { readonly id: string }[];
    readonly pageInfo: { readonly endCursor: string };
  };
}

interface TokenSet {
  readonly access_token: string;
  readonly refresh_token: string;
}

/** What a client of the sandbox does. */
function clientOf(url: string) {
  return {
    openLink: async (link: string) => (await (await fetch(link)).json()) as TokenSet,
    exchange: ({ refresh_token }: TokenSet) => {
      const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token });
      return fetch(`${url}/oauth/token`, { method: 'POST', body });
    },
    /** Returns why an access token is refused; `valid` if it is not. */
    stateOf: async ({ access_token }: TokenSet) => {
      const headers = { authorization: `Bearer ${access_token}` };
      const response = await fetch(`${url}/auth_check`, { headers });
      if (response.status === 204) return 'valid';
      return ((await response.json()) as { detail: string }).detail;
    },
    ask: ({ access_token }: TokenSet, query: string, variables?: Record<string, unknown>) =>
      askAt(`${url}/graphql`, query, variables, { authorization: `Bearer ${access_token}` }),
  };
}

test('the sandbox has the schema of the snapshot, and each person once in pages of at most 50', async () => {
  const sandbox = await startSandbox({ persons: 103 });
  onTestFinished(() => sandbox.close());
  const { openLink, ask } = clientOf(sandbox.url);
  const set = await openLink(sandbox.tokenLink);
  const { data } = await ask(set, getIntrospectionQuery());
  const snapshot = buildSchema(readFileSync('schema/upstream.graphql', 'utf8'));
  expect(shapeOf(buildClientSchema(data as unknown as IntrospectionQuery))).toBe(shapeOf(snapshot));

  const ids: string[] = [];
  let after: string | null = null;
  for (const [first, size] of [
    [1, 1],
    [51, 50],
    [null, 50],
    [50, 2],
  ]) {
    const answer = await ask(set, PAGE, { first, after });
    const { items, pageInfo } = (answer.data as unknown as Page).persons;
    expect(items).toHaveLength(size!);
    expect(pageInfo).toMatchObject({ first: Math.min(first ?? 50, 50), hasNextPage: size !== 2 });
    ids.push(...items.map(({ id }) => id));
    after = pageInfo.endCursor;
  }
  expect(new Set(ids).size).toBe(103);
  expect((await ask(set, '{ nobody }')).errors).toHaveLength(1);
  for (const [variables, message] of [
    [{ first: 0 }, /^first must be from 1 to 50, and it is 0/],
    [{ after: `${after}=` }, /malformed/],
  ] as const) {
    const { errors } = await ask(set, PAGE, variables);
    expect(errors).toMatchObject([{ message: expect.stringMatching(message) }]);
  }
});

function shapeOf(schema: GraphQLSchema): string {
  const silent = buildClientSchema(introspectionFromSchema(schema, { descriptions: false }));
  return printSchema(lexicographicSortSchema(silent));
}

test('the token link works until the first refresh, a refresh token once, and an access token until its own expiry', async () => {
  let now = Date.UTC(2026, 0, 1);
  const pass = (ms: number) => void (now += ms);
  await using service = await startService({ now: () => now, expiresIn: 60 });
  const { openLink, exchange, stateOf } = clientOf(service.url);
  const old = await openLink(service.tokenLink);
  const lifetimes = { expires_in: 60, refresh_token_expires_in: 10_368_000 };
  expect(old).toMatchObject({ ...lifetimes, created_at: now / 1_000 });
  expect(await openLink(service.tokenLink)).toEqual(old);
  pass(30 * SECOND);
  const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(old)));
  expect(answers.filter(({ status }) => status === 400)).toHaveLength(19);
  const fresh = (await answers.find(({ status }) => status === 200)!.json()) as TokenSet;
  expect((await fetch(service.tokenLink)).status).toBe(404);
  pass(30 * SECOND - 1);
  expect(await stateOf(old)).toBe('valid');
  pass(1);
  expect([await stateOf(old), await stateOf(fresh)]).toEqual(['token_expired', 'valid']);
  expect(await stateOf({ ...fresh, access_token: 'made-up' })).toBe('token_invalid');
});

test('an administrator makes and revokes tokens over HTTP', async () => {
  const sandbox = await startSandbox();
  onTestFinished(() => sandbox.close());
  const { openLink, exchange, stateOf } = clientOf(sandbox.url);
  const post = async (action: string) =>
    (await fetch(`${sandbox.url}/account/${action}`, { method: 'POST' })).text();
  const old = await openLink(sandbox.tokenLink);
  await exchange(old);
  const made = await openLink((await post('tokens')).trim());
  expect([await stateOf(old), await stateOf(made)]).toEqual(['token_invalid', 'valid']);
  expect(await post('revoke')).toBe('All tokens are revoked.\n');
  expect(await stateOf(made)).toBe('token_invalid');
  for (const set of [old, made]) expect((await exchange(set)).status).toBe(400);
});
